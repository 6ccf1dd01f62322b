/** `mayfly catch …`: the owner's commands of an inbox. */
import type { Command } from 'commander'
import { createHttp } from '../../client/http.ts'
import { client } from '../cli.ts'
import { examples } from '../text.ts'
import { loadCatch } from '../vault/saved.ts'
import { addCatchEvents, addCatchExport, findEvent } from './events.ts'
import { addCatchListen } from './listen.ts'
import { addCatchReplay } from './replay.ts'
import { addCatchVerify } from './verify.ts'

export function addCatch(program: Command): void {
  const parent = program
    .command('catch')
    .description('follow, read, forward and delete the webhooks of an inbox')
  addCatchListen(parent)
  addCatchEvents(parent)
  addTrigger(parent)
  addCatchReplay(parent)
  addCatchVerify(parent)
  addCatchExport(parent)
  addDelete(parent)
}

function addTrigger(parent: Command): void {
  parent
    .command('trigger')
    .description('send a webhook to an inbox, to try what listens to it; it counts as a request')
    .argument('<name>', 'the inbox')
    .option('--data <json>', 'its body', '{"hello":"from mayfly"}')
    .addHelpText('after', examples(`mayfly catch trigger hooks --data '{"action":"opened"}'`))
    .action(
      client<{ data: string }>(async (cli, { data }, [name]) => {
        const saved = loadCatch(cli, name)
        const http = createHttp(saved.baseUrl, cli.traced(fetch))
        await http.perform({
          method: 'POST',
          path: `/c/${saved.capability.publicId}`,
          token: saved.capability.ingestToken,
          headers: { 'content-type': 'application/json' },
          body: data,
          signal: cli.signal,
        })
        cli.answer({ name, sent: true }, `Sent. To see it: mayfly catch show ${name}\n`)
      }),
    )
}

function addDelete(parent: Command): void {
  parent
    .command('delete')
    .description('delete one webhook permanently')
    .argument('<name>', 'the inbox')
    .argument('<event>', 'its id or sequence number')
    .addHelpText(
      'after',
      examples(
        'mayfly catch delete hooks 7',
        'mayfly catch delete hooks 01a1fb67-e43b-78ca-9860-000000000001',
      ),
    )
    .action(
      client<object, [name: string, event: string]>(async (cli, _options, [name, which]) => {
        const { capability, baseUrl } = loadCatch(cli, name)
        const inbox = cli.mayfly(baseUrl).catch(capability)
        const { id, sequence } = await findEvent(inbox, which)
        await inbox.deleteEvent(id)
        cli.answer({ id, sequence, deleted: true }, `Webhook ${sequence} is deleted.\n`)
      }),
    )
}
