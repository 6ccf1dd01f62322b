/** `mayfly catch …`: the owner's commands of an inbox. */
import type { Command } from 'commander'
import { createHttp } from '../../client/http.ts'
import type { CatchRefusals } from '../../client/index.ts'
import { inboxAddress } from '../addresses.ts'
import { confirmDestroying } from '../ask.ts'
import { client } from '../cli.ts'
import { examples } from '../examples.ts'
import { EXIT } from '../exit.ts'
import { away, columns, size } from '../text.ts'
import { forget, loadCatch } from '../vault/saved.ts'
import { addCatchEvents, addCatchExport, addCatchNext, findEvent } from './events.ts'
import { addCatchListen } from './listen.ts'
import { addCatchReplay } from './replay.ts'
import { addCatchVerify } from './verify.ts'

export function addCatch(program: Command): void {
  const parent = program
    .command('catch')
    .description('follow, read, forward and delete the webhooks of an inbox')
  addCatchListen(parent)
  addCatchNext(parent)
  addCatchEvents(parent)
  addStatus(parent)
  addTrigger(parent)
  addCatchReplay(parent)
  addCatchVerify(parent)
  addCatchExport(parent)
  addDelete(parent)
  addDestroy(parent)
}

function addStatus(parent: Command): void {
  parent
    .command('status')
    .description('show the state, limits and counters of an inbox')
    .argument('<name>', 'the inbox')
    .addHelpText('after', examples('mayfly catch status hooks'))
    .action(
      client(async (cli, _options, [name]) => {
        const saved = loadCatch(cli, name)
        const ingestUrl = inboxAddress(saved)
        const inbox = cli.mayfly(saved.baseUrl).catch(saved.capability)
        const status = await inbox.status()
        const refusals = await inbox.refusals()
        cli.answer(
          { ...status, ingestUrl, refusals },
          columns([
            ['state', status.status],
            ['ends', `${away(status.expiresAt, cli.now())}, ${status.expiresAt}`],
            ['requests', `${status.acceptedRequestCount} of ${status.requestLimit}`],
            ['stored', `${size(status.storedBytes)} of ${size(status.storageLimitBytes)}`],
            ['refused', refusedIn(refusals, cli.now())],
            ['address', ingestUrl],
          ]),
        )
        return EXIT.ok
      }),
    )
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
        return EXIT.ok
      }),
    )
}

/** Such as `3: 2 rate_limited, last 5 s ago; 1 too_large, last 2 d ago`. */
function refusedIn({ total, reasons }: CatchRefusals, now: number): string {
  const each = reasons.map(
    ({ reason, count, lastAt }) => `${count} ${reason}, last ${away(lastAt, now)}`,
  )
  return total === 0 ? 'none' : `${total}: ${each.join('; ')}`
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
        return EXIT.ok
      }),
    )
}

function addDestroy(parent: Command): void {
  parent
    .command('destroy')
    .description('destroy an inbox with all its webhooks, and remove it here')
    .argument('<name>', 'the inbox')
    .option('--yes', 'do not ask for confirmation; this cannot be undone')
    .addHelpText('after', examples('mayfly catch destroy hooks --yes'))
    .action(
      client<{ yes?: true }>(async (cli, { yes }, [name]) => {
        const { capability, baseUrl } = loadCatch(cli, name)
        if (!yes) await confirmDestroying(cli, name, `${name} and all its webhooks`)
        await cli.mayfly(baseUrl).catch(capability).destroy()
        forget(cli, name)
        cli.answer({ name, destroyed: true }, `${name} is destroyed, and removed here.\n`)
        return EXIT.ok
      }),
    )
}
