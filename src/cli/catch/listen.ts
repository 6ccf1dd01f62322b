/** `mayfly catch listen NAME`: shows new webhooks, and forwards them to a receiver. */
import type { CatchClient, CatchEvent, CatchState, EventFilter } from '../../client/index.ts'
import { inboxAddress } from '../addresses.ts'
import { type Cli, client } from '../cli.ts'
import { whole } from '../declare.ts'
import { CliError, EXIT, misuse, notThere } from '../exit.ts'
import { goesWith, receiverOf } from '../options.ts'
import { failedEvents, startListening } from '../vault/listening.ts'
import { loadCatch } from '../vault/saved.ts'
import { described, FILTER, parseFilter } from './events.ts'
import { deliver, isAccepted, showForwarded } from './forward.ts'
import { watchRefusals } from './refusals.ts'

/** All that come after wait for one that fails: with the pauses, for a quarter of an hour. */
const MAX_RETRIES = 20
/** A day. Node's timers end at about 24 days. */
const MAX_TIMEOUT_SECONDS = 86_400

export const addCatchListen = client({
  command: 'listen',
  says: 'show webhooks as they arrive, and forward them to a receiver',
  takes: {
    '<name>': 'the inbox',
    '--forward <url>': 'forward each one to this address, in order, once',
    '--retry <times>': [
      'with --forward, send again what fails (no answer, or 400 and above)',
      whole(0, MAX_RETRIES),
    ],
    '--since <where>':
      'a sequence number to start after, or now, start, or last (where it stopped)',
    ...FILTER,
    '--once': 'stop after the first one; with --forward, a failure if it is not accepted',
    '--timeout <seconds>': [
      'stop after this time; with --once, that is a failure',
      whole(1, MAX_TIMEOUT_SECONDS),
    ],
  },
  examples: [
    'mayfly catch listen hooks --forward http://localhost:3000/hook',
    'mayfly catch listen hooks --forward http://localhost:3000/hook --retry 5',
    'mayfly catch listen hooks --since start --filter method=POST',
    'mayfly catch listen hooks --once --timeout 60 --json',
  ],
  notes: `
With --forward it remembers its position, and the next start continues there. A second listener on the same inbox
takes over, and the first one ends. It waits for a receiver that is down. What fails is remembered, for
\`catch replay --failed\`, and so is what was sent and not answered before a kill. With --retry, what fails is sent again
before that, up to ${MAX_RETRIES} times, after a second, two, four and so on up to a minute, or up to half less by chance;
all that comes after it waits, so the order stays. A stop in between loses nothing. It does not forward a path with .. in
it, so all stays below the receiver's address. Each request carries X-Mayfly-Event-Id and X-Mayfly-Event-Sequence.
`,
  async run(cli, { name, forward, retry, since, filter: wanted, ...ending }) {
    const saved = loadCatch(cli, name)
    const filter = parseFilter(wanted)
    goesWith('--forward', forward !== undefined, { '--retry': retry })
    const taking =
      forward === undefined
        ? await showing(cli, saved, since)
        : await forwarding(cli, saved, {
            name,
            to: receiverOf(forward),
            since,
            retries: retry ?? 0,
          })
    return follow(cli, saved.inbox, { ...ending, filter, ...taking })
  },
})

type Inbox = ReturnType<typeof loadCatch>

type Taking = {
  /** The last event that is not taken any more. */
  after: number
  /** Resolves to how --once ends after this event; null if the signal came first. */
  take(event: CatchEvent, signal: AbortSignal): Promise<number | null>
}

/** Shows events. */
async function showing(cli: Cli, saved: Inbox, since: string | undefined): Promise<Taking> {
  const after = await sinceOf(since ?? 'now', saved.inbox, null)
  cli.note(`Waiting for webhooks to ${inboxAddress(saved)}`)
  if (since === undefined) noteSkipped(cli, after)
  return {
    after,
    async take(event) {
      cli.answer(event, `${described(event)}\n`)
      return EXIT.ok
    },
  }
}

/** Shows events and forwards them. */
async function forwarding(
  cli: Cli,
  saved: Inbox,
  {
    name,
    to,
    since,
    retries,
  }: { name: string; to: URL; since: string | undefined; retries: number },
): Promise<Taking> {
  const { inbox, capability } = saved
  const { publicId } = capability
  const listener = startListening(cli, publicId)
  const failedBefore = failedEvents(cli, publicId).length
  const before = listener.last
  const after = await sinceOf(since ?? 'last', inbox, before)
  // Recorded now, so that the next start misses no event if this process is killed.
  if (before !== after) listener.goOnAfter(after)
  cli.note(`Listening on ${name}: webhooks to ${inboxAddress(saved)} are forwarded to ${to.href}`)
  if (since === undefined && before === null) noteSkipped(cli, after)
  const sendAgain = `To send again all that failed: mayfly catch replay ${name} --failed --to ${to.href}`
  if (failedBefore > 0)
    cli.warn(`${haveFailed(failedBefore)} before, or got no answer. ${sendAgain}`)
  let isToldHow = failedBefore > 0
  return {
    after,
    async take(event, signal) {
      const answer = await deliver(cli, event, { to, listener, retries, signal })
      if (answer === null) return null
      const hasFailed = !isAccepted(answer) && !answer.isRefused
      if (hasFailed) listener.failed(event.sequence)
      else listener.done(event.sequence)
      showForwarded(cli, event, answer)
      if (hasFailed && !isToldHow) cli.warn(sendAgain)
      isToldHow ||= hasFailed
      return isAccepted(answer) ? EXIT.ok : EXIT.failed
    },
  }
}

const haveFailed = (count: number): string =>
  count === 1 ? '1 webhook has failed' : `${count} webhooks have failed`

const LOST = 'The connection is lost. Trying again; the service keeps what comes meanwhile.'
const BACK = 'The connection is back.'

const SUSPENDED =
  'The operator has suspended the inbox: it takes no webhooks until the operator resumes it. Waiting.'

/** Says that the connection is lost or back. The stream of a suspended inbox ends at once, again and again. */
function connectionTold(cli: Cli, inbox: CatchClient): (state: 'open' | 'lost') => void {
  let told = 'back'
  const tell = (state: string, say: (sentence: string) => void, sentence: string): void => {
    if (told !== state) say(sentence)
    told = state
  }
  return (state) => {
    if (state === 'open' && told !== 'back') {
      void inbox
        .status()
        .then(({ status }) => {
          if (status === 'suspended') tell('suspended', cli.warn, SUSPENDED)
          else tell('back', cli.note, BACK)
        })
        .catch(() => undefined)
    }
    if (state === 'lost' && told === 'back') tell('lost', cli.note, LOST)
  }
}

type Following = Taking & { filter: EventFilter; once?: true; timeout?: number }

/** Handles the events that match the filter, one after another, until there is a reason to end. */
async function follow(
  cli: Cli,
  inbox: CatchClient,
  { after, filter, once, timeout, take }: Following,
): Promise<number> {
  const limit = timeout === undefined ? null : AbortSignal.timeout(timeout * 1000)
  const signal = limit ? AbortSignal.any([cli.signal, limit]) : cli.signal
  const onConnection = connectionTold(cli, inbox)
  const stream = inbox.stream({ after, filter, signal, onConnection })
  let isTaking = false
  const refusals = watchRefusals((until) => inbox.refusals({ signal: until }), cli.warn)
  try {
    for (;;) {
      const next = await stream.next()
      if (next.done) return endedAs(cli, next.value)
      refusals.arrived()
      isTaking = true
      const code = await take(next.value, signal)
      if (code !== null && once) return code
      // The stream may still yield buffered events. They are left for the next start.
      signal.throwIfAborted()
    }
  } catch (error) {
    if (cli.signal.aborted || !limit?.aborted) throw error
    if (!once) return EXIT.ok
    throw new CliError(`No webhook ${isTaking ? 'was delivered' : 'arrived'} within ${timeout} s.`)
  } finally {
    refusals.stop()
    await stream.return('active').catch(() => undefined)
  }
}

async function sinceOf(since: string, inbox: CatchClient, last: number | null): Promise<number> {
  if (since === 'start') return 0
  if (/^\d{1,15}$/.test(since)) return Number(since)
  if (since === 'last' && last !== null) return last
  if (since === 'now' || since === 'last') return (await inbox.page({ limit: 1 })).latestSequence
  throw misuse('--since must be a sequence number, now, start or last.')
}

/** Says how many webhooks came before the first start. Those that were deleted count too. */
function noteSkipped(cli: Cli, count: number): void {
  if (count === 0) return
  const earlier = count === 1 ? '1 earlier webhook is' : `${count} earlier webhooks are`
  cli.note(`${earlier} skipped. To begin with the first: --since start`)
}

function endedAs(cli: Cli, status: CatchState): number {
  if (status === 'exhausted') {
    cli.note('The inbox has received all the requests of its plan. No more can come.')
    return EXIT.ok
  }
  throw notThere(`The inbox has ended: ${status.replaceAll('_', ' ')}.`)
}
