/** The status of a monitor, as rows of a name and a text for a terminal. */
import type { PulseStatus } from '../client/index.ts'
import { away, harmless, span } from './text.ts'

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
    ['title', harmless(status.name) || '-'],
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
