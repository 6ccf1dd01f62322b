/** `mayfly status NAME`: what the service says of a thing, which `mayfly list` remembers. */
import { isPingOnly, type Kept } from '../client/capability-file.ts'
import {
  type CatchRefusals,
  type CatchStatus,
  type Mayfly,
  MayflyError,
  type PulseStatus,
  type SavedCapability,
  type WhisperReceipt,
} from '../client/index.ts'
import { inboxAddress, sharedAddresses } from './addresses.ts'
import { type Cli, client } from './cli.ts'
import { away, columns, size, span } from './text.ts'
import { checkReceipt, load, rememberState } from './vault/saved.ts'

export const addStatus = client({
  command: 'status',
  says: 'show the state, limits and counters of what is saved under a name',
  takes: { '<name>': 'an inbox, a monitor, or a whisper that was sent with --receipt' },
  examples: ['mayfly status hooks', 'mayfly status backup --json'],
  async run(cli, { name }) {
    const saved = load(cli, name)
    checkReceipt(name, saved.capability)
    try {
      const { state, show } = await toldOf(cli.mayfly(saved.baseUrl), saved)
      rememberState(cli, name, state)
      await show(cli)
    } catch (error) {
      if (isGone(error)) rememberState(cli, name, GONE)
      throw error
    }
  },
})

/** What the service says of a thing, and how it is shown. */
async function toldOf(
  mayfly: Mayfly,
  { capability, baseUrl }: SavedCapability,
): Promise<{ state: string; show(cli: Cli): unknown }> {
  if (capability.product === 'catch') {
    const inbox = mayfly.catch(capability)
    const status = await inbox.status()
    const ingestUrl = inboxAddress({ capability, baseUrl })
    const show = async (cli: Cli) =>
      showInbox(cli, { ...status, ingestUrl, refusals: await inbox.refusals() })
    return { state: status.status, show }
  }
  if (capability.product === 'pulse') {
    const status = await mayfly.pulse(capability).status()
    return { state: status.state, show: (cli) => showMonitor(cli, baseUrl, status) }
  }
  const receipt = await mayfly.whisperReceipt(capability).status()
  return { state: receipt.state, show: (cli) => showReceipt(cli, receipt) }
}

/** The state of what the service knows no more. */
export const GONE = 'gone'

/** The states of which nothing is left, and how they are called here. */
export const ENDED: ReadonlyMap<string, string> = new Map([
  ['manually_destroyed', 'destroyed'],
  ['destroyed', 'destroyed'],
  ['expired', 'expired'],
  [GONE, 'gone'],
])

export const isGone = (error: unknown): boolean =>
  error instanceof MayflyError && (error.phrase === 'not found' || error.phrase === 'unauthorized')

/** A part of an inbox or a monitor; null if it does not exist. @throws MayflyError also if the whole is gone. */
export async function partOf<T>(
  whole: { status(): Promise<unknown> },
  part: Promise<T>,
): Promise<T | null> {
  try {
    return await part
  } catch (error) {
    if (!isGone(error)) throw error
    await whole.status()
    return null
  }
}

/** The state that the service tells now. Null where asking would spend something: a read, or a ping. */
export async function stateOf(mayfly: Mayfly, kept: Kept): Promise<string | null> {
  if (isPingOnly(kept)) return null
  const { capability } = kept
  if (capability.product === 'whisper' && capability.receiptToken === undefined) return null
  try {
    return (await toldOf(mayfly, kept)).state
  } catch (error) {
    if (isGone(error)) return GONE
    throw error
  }
}

function showInbox(
  cli: Cli,
  status: CatchStatus & { ingestUrl: string; refusals: CatchRefusals },
): void {
  cli.answer(
    status,
    columns([
      ['state', status.status],
      ['ends', `${away(status.expiresAt, cli.now())}, ${status.expiresAt}`],
      ['requests', `${status.acceptedRequestCount} of ${status.requestLimit}`],
      ['stored', `${size(status.storedBytes)} of ${size(status.storageLimitBytes)}`],
      ['refused', refusedIn(status.refusals, cli.now())],
      ['address', status.ingestUrl],
    ]),
  )
}

/** Such as `3: 2 rate_limited, last 5 s ago; 1 too_large, last 2 d ago`. */
function refusedIn({ total, reasons }: CatchRefusals, now: number): string {
  const each = reasons.map(
    ({ reason, count, lastAt }) => `${count} ${reason}, last ${away(lastAt, now)}`,
  )
  return total === 0 ? 'none' : `${total}: ${each.join('; ')}`
}

export function showMonitor(cli: Cli, baseUrl: string, status: PulseStatus): void {
  const shared = sharedAddresses(baseUrl, status)
  cli.answer({ ...status, ...shared }, columns(statusRows(status, { now: cli.now(), shared })))
}

/** `now` is in unix ms. What does not apply, such as a failure, has no row. */
export function statusRows(
  status: PulseStatus,
  { now, shared }: { now: number; shared: { statusUrl?: string; badgeUrl?: string } },
): [string, string][] {
  const { statusUrl, badgeUrl } = shared
  const { lastPingAt, lateAt, failure, lastRun } = status
  return [
    ['state', status.state],
    ...rowIf('failed', failure && `${away(failure.since, now)}${coded(failure.exitCode)}`),
    ['title', status.name || '-'],
    ['last ping', lastPingAt === null ? 'never' : away(lastPingAt, now)],
    ...rowIf('last run', lastRun && ended(lastRun, now)),
    ['late', lateAt === null ? '-' : away(lateAt, now)],
    ['expects', expected(status)],
    ['pings', `${status.acceptedHeartbeatCount} of ${status.heartbeatLimit}`],
    ['shared', statusUrl ?? 'no'],
    ...rowIf('badge', badgeUrl ?? null),
    ...rowIf('Markdown', badgeUrl ? `[![state](${badgeUrl})](${statusUrl})` : null),
    ['ends', `${away(status.expiresAt, now)}, ${status.expiresAt}`],
  ]
}

const rowIf = (name: string, text: string | null): [string, string][] =>
  text === null ? [] : [[name, text]]

const coded = (exitCode: number | null) => (exitCode === null ? '' : `, exit code ${exitCode}`)

function ended(run: NonNullable<PulseStatus['lastRun']>, now: number): string {
  const { result, exitCode, endedAt, durationSeconds } = run
  const failed = `failed ${away(endedAt, now)}${coded(exitCode)}`
  const took = durationSeconds === null ? '' : `, after ${span(Math.round(durationSeconds))}`
  return `${result === 'failed' ? failed : `succeeded ${away(endedAt, now)}`}${took}`
}

function expected({ schedule, expectedIntervalSeconds, graceSeconds }: PulseStatus): string {
  return schedule === null
    ? `a ping every ${expectedIntervalSeconds} s, at most ${graceSeconds} s late`
    : `a ping at ${schedule.cron} (${schedule.timeZone}), at most ${schedule.graceSeconds} s late`
}

/** What each state of a switch means for its owner. */
const SWITCHES: Record<NonNullable<WhisperReceipt['switch']>['state'], string> = {
  waiting: 'the next ping of its monitor arms it; without one it never opens',
  armed: 'it opens when the pings stop',
  open: 'everyone who has the code can read it',
  dead: 'it never opens any more',
}

function showReceipt(cli: Cli, receipt: WhisperReceipt): void {
  const { state, readsSpent, readLimit, reads, revealAt, endedAt, expiresAt } = receipt
  const { switch: bound } = receipt
  const at = (time: string): string => `${away(time, cli.now())}, ${time}`
  cli.answer(
    receipt,
    columns([
      ['state', state],
      ['reads', `${readsSpent} of ${readLimit}`],
      ...rowIf('opens', revealAt && at(revealAt)),
      ...rowIf('switch', bound && `${bound.state} since ${bound.since}: ${SWITCHES[bound.state]}`),
      endedAt === null ? ['expires', at(expiresAt)] : ['ended', at(endedAt)],
      ...reads.map((minute) => ['read', at(minute)]),
    ]),
  )
}
