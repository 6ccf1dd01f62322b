/** `mayfly catch …`: the owner's commands of an inbox. */
import type { Command } from 'commander'
import { client } from '../cli.ts'
import { loadCatch } from '../vault/saved.ts'
import { addCatchEvents, addCatchExport, findEvent } from './events.ts'
import { addCatchListen } from './listen.ts'
import { addCatchReplay } from './replay.ts'
import { addCatchRespond } from './respond.ts'
import { addCatchTrigger } from './trigger.ts'
import { addCatchVerify } from './verify.ts'

export function addCatch(program: Command): void {
  const parent = program
    .command('catch')
    .description('follow, read, forward and delete the webhooks of an inbox')
  addCatchListen(parent)
  addCatchEvents(parent)
  addCatchRespond(parent)
  addCatchTrigger(parent)
  addCatchReplay(parent)
  addCatchVerify(parent)
  addCatchExport(parent)
  addDelete(parent)
}

function addDelete(parent: Command): void {
  client<object, [name: string, event: string]>(
    parent
      .command('delete')
      .description('delete one webhook permanently')
      .argument('<name>', 'the inbox')
      .argument('<event>', 'its id or sequence number'),
    {
      examples: [
        'mayfly catch delete hooks 7',
        'mayfly catch delete hooks 01a1fb67-e43b-78ca-9860-000000000001',
      ],
    },
    async (cli, _options, [name, which]) => {
      const { inbox } = loadCatch(cli, name)
      const { id, sequence } = await findEvent(inbox, which)
      await inbox.deleteEvent(id)
      cli.answer({ id, sequence, deleted: true }, `Webhook ${sequence} is deleted.\n`)
    },
  )
}
