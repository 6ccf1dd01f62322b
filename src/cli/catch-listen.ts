/** `mayfly catch listen NAME`: shows new webhooks, and forwards them to a receiver. */
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Command } from 'commander'
import {
  type CatchClient,
  type CatchEvent,
  type CatchState,
  type EventFilter,
  matchesFilter,
} from '../client/index.ts'
import { messageOf } from '../lib/errors.ts'
import { inboxAddress } from './addresses.ts'
import { parseFilter } from './catch-filter.ts'
import { type Cli, client, wholeNumber } from './cli.ts'
import { examples } from './examples.ts'
import { CliError, EXIT } from './exit.ts'
import { type Forwarded, forward, isAccepted, pauseMs, receiverOf } from './forward.ts'
import { takeLock } from './lock.ts'
import { openPosition, type Position } from './position.ts'
import { loadCatch } from './saved.ts'
import { harmless, size } from './text.ts'

/** How often an event is sent to a receiver that hangs up without an answer, before it is skipped. */
const HANG_UPS = 3
/** A day. Node's timers end at about 24 days. */
const MAX_TIMEOUT_SECONDS = 86_400

type Options = {
  forward?: string
  since?: string
  filter?: string
  once?: true
  timeout?: string
}

export function addCatchListen(parent: Command): void {
  parent
    .command('listen')
    .description('show webhooks as they arrive, and forward them to a receiver')
    .argument('<name>', 'the inbox')
    .option('--forward <url>', 'forward each one to this address, in order, once')
    .option(
      '--since <where>',
      'a sequence number to start after, or now, start, or last (where it stopped)',
    )
    .option('--filter <filter>', 'such as method=POST,contentType=application/json,q=opened')
    .option('--once', 'stop after the first one')
    .option('--timeout <seconds>', 'stop after this time; with --once, that is a failure')
    .addHelpText(
      'after',
      `${examples(
        'mayfly catch listen hooks --forward http://localhost:3000/hook',
        'mayfly catch listen hooks --since start --filter method=POST',
        'mayfly catch listen hooks --once --timeout 60 --json',
      )}
With --forward it remembers its position, and the next start continues there. An event that was sent but not
answered before a kill is not sent again: the next start names it, for \`catch replay\`. It waits for a receiver
that is down. It does not forward a path with .. in it, so all stays below the receiver's address. Each
request carries X-Mayfly-Event-Id and X-Mayfly-Event-Sequence.
`,
    )
    .action(
      client<Options>(async (cli, options, [name]) => {
        const { capability, baseUrl } = loadCatch(cli, name)
        const inbox = cli.mayfly(baseUrl).catch(capability)
        const filter = parseFilter(options.filter)
        const address = inboxAddress({ capability, baseUrl })
        if (options.forward === undefined) return watch(cli, inbox, { ...options, filter, address })
        return withPosition(cli, name, (position) =>
          listen(cli, inbox, {
            ...options,
            filter,
            address,
            name,
            to: receiverOf(options.forward ?? ''),
            position,
          }),
        )
      }),
    )
}

type Watching = Omit<Options, 'filter' | 'forward'> & { filter: EventFilter; address: string }
type Listening = Watching & { name: string; to: URL; position: Position }

/** Shows events. */
async function watch(cli: Cli, inbox: CatchClient, options: Watching): Promise<number> {
  const after = await sinceOf(options.since ?? 'now', inbox, null)
  cli.note(`Waiting for webhooks to ${options.address}`)
  if (options.since === undefined) noteSkipped(cli, after, 'shows')
  return follow(cli, inbox, {
    ...options,
    after,
    async take(event) {
      cli.answer(event, `${described(event)}\n`)
    },
  })
}

/** Shows events and forwards them. */
async function listen(cli: Cli, inbox: CatchClient, options: Listening): Promise<number> {
  const { to, position, name } = options
  if (position.unanswered !== null) {
    cli.note(
      `Event ${position.unanswered} was sent, but the listener was killed before the answer came. It is not sent again. To send it again: mayfly catch replay ${name} ${position.unanswered} --to ${to.href}`,
    )
  }
  const before = position.last()
  const after = await sinceOf(options.since ?? 'last', inbox, before)
  // Recorded now, so that the next start misses no event if this process is killed.
  if (position.last() !== after) position.done(after)
  cli.note(`Listening on ${name}: webhooks to ${options.address} are forwarded to ${to.href}`)
  if (options.since === undefined && before === null) noteSkipped(cli, after, 'sends')
  return follow(cli, inbox, {
    ...options,
    after,
    onPassed: (event) => position.passed(event.sequence),
    async take(event) {
      const answer = await deliver(cli, event, { to, position })
      if (answer === null) return
      position.done(event.sequence)
      showForwarded(cli, event, answer)
    },
  })
}

const LOST = 'The connection is lost. Trying again; the service keeps what comes meanwhile.'

type Following = Omit<Watching, 'address'> & {
  after: number
  take(event: CatchEvent): Promise<void>
  /** Called for an event that the filter skips. */
  onPassed?: (event: CatchEvent) => void
}

/** Handles the events that match the filter, one after another, until there is a reason to end. */
async function follow(
  cli: Cli,
  inbox: CatchClient,
  { after, filter, once, timeout, take, onPassed }: Following,
): Promise<number> {
  const seconds =
    timeout === undefined
      ? null
      : wholeNumber(timeout, { option: '--timeout', least: 1, most: MAX_TIMEOUT_SECONDS })
  const limit = seconds === null ? null : AbortSignal.timeout(seconds * 1000)
  const signal = limit ? AbortSignal.any([cli.signal, limit]) : cli.signal
  const onConnection = (state: 'lost' | 'back'): void =>
    cli.note(state === 'lost' ? LOST : 'The connection is back.')
  const stream = inbox.stream({ after, signal, onConnection })
  try {
    for (;;) {
      const next = await stream.next()
      if (next.done) return endedAs(cli, next.value)
      if (!matchesFilter(next.value, filter)) {
        onPassed?.(next.value)
        continue
      }
      await take(next.value)
      if (once) return EXIT.ok
      // The stream may still yield buffered events. They are left for the next start.
      signal.throwIfAborted()
    }
  } catch (error) {
    if (cli.signal.aborted || !limit?.aborted) throw error
    if (!once) return EXIT.ok
    throw new CliError(`No webhook arrived within ${seconds} s.`)
  } finally {
    await stream.return('active').catch(() => undefined)
  }
}

/** Sends an event until the receiver answers. Null if the user interrupts this. */
async function deliver(
  cli: Cli,
  event: CatchEvent,
  { to, position }: { to: URL; position: Position },
): Promise<Forwarded | null> {
  let hangUps = 0
  for (let tries = 0; ; tries++) {
    try {
      const answer = await forward(event, { to, onSent: () => position.sent(event.sequence) })
      if (answer.status !== null || answer.isLate || answer.isRefused) return answer
      if (++hangUps === HANG_UPS) return answer
      if (cli.signal.aborted) return answer
    } catch (error) {
      if (cli.signal.aborted) return null
      if (tries === 0) {
        const why = messageOf(error)
        cli.note(
          `${to.href} cannot be reached (${why}). Waiting for it; nothing is lost meanwhile.`,
        )
      }
    }
    try {
      await wait(pauseMs(tries), undefined, { signal: cli.signal })
    } catch {
      // The receiver hung up without an answer, so the next start sends the event again.
      if (hangUps > 0) position.done(event.sequence - 1)
      return null
    }
  }
}

async function withPosition(
  cli: Cli,
  name: string,
  work: (position: Position) => Promise<number>,
): Promise<number> {
  const file = join(cli.folder, 'listening', name)
  const lock = takeLock(`${file}.lock`)
  if ('heldBy' in lock) {
    throw new CliError(
      `Process ${lock.heldBy} is listening on ${name} already. Stop it first, or watch without --forward.`,
    )
  }
  try {
    const position = openPosition(`${file}.position`)
    try {
      return await work(position)
    } finally {
      position.close()
    }
  } finally {
    lock.release()
  }
}

async function sinceOf(since: string, inbox: CatchClient, last: number | null): Promise<number> {
  if (since === 'start') return 0
  if (/^\d{1,15}$/.test(since)) return Number(since)
  if (since === 'last' && last !== null) return last
  if (since === 'now' || since === 'last') return (await inbox.page({ limit: 1 })).latestSequence
  throw new CliError('--since must be a sequence number, now, start or last.', EXIT.usage)
}

/** Says how many webhooks came before the first start. Those that were deleted count too. */
function noteSkipped(cli: Cli, count: number, verb: 'shows' | 'sends'): void {
  if (count === 0) return
  const earlier = count === 1 ? '1 earlier webhook is' : `${count} earlier webhooks are`
  cli.note(`${earlier} skipped. --since start ${verb} ${count === 1 ? 'it' : 'them all'}.`)
}

function endedAs(cli: Cli, status: CatchState): number {
  if (status === 'exhausted') {
    cli.note('The inbox has received all the requests of its plan. No more can come.')
    return EXIT.ok
  }
  throw new CliError(`The inbox has ended: ${status.replaceAll('_', ' ')}.`, EXIT.gone)
}

function showForwarded(cli: Cli, event: CatchEvent, answer: Forwarded): void {
  const { status, durationMs, error } = answer
  const said = isAccepted(answer) ? undefined : answer.answer
  const { sequence, id, method, path, query, bodyBytes, receivedAt } = event
  const style = status === null || status >= 500 ? 'red' : status >= 400 ? 'yellow' : 'green'
  const outcome = outcomeOf(answer)
  cli.answer(
    {
      sequence,
      id,
      receivedAt,
      method,
      path,
      query,
      bodyBytes,
      status,
      durationMs,
      error,
      answer: said,
    },
    `${described(event)} ${cli.paint('dim', '→')} ${cli.paint(style, harmless(outcome))}\n${said === undefined ? '' : `    it says: ${harmless(said)}\n`}`,
  )
}

/** The outcome of a forwarded event, in a few words. */
export function outcomeOf({ status, durationMs, isRefused, error }: Forwarded): string {
  if (status !== null) return `${status} in ${durationMs} ms`
  return isRefused ? `not sent: ${error}` : `sent, but ${error ?? 'no answer'}`
}

/** An event as one line. */
export function described(event: CatchEvent): string {
  const { sequence, receivedAt, method, path, query, bodyBytes } = event
  const time = new Date(receivedAt).toLocaleTimeString('en-GB')
  const address = harmless(`${method} ${path || '/'}${query === '' ? '' : `?${query}`}`)
  return `${time}  #${sequence}  ${address}  ${size(bodyBytes)}`
}
