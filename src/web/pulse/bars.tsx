/** The past of a monitor: a bar for each day, one for each recent ping with its duration, and a log. */
import { useState } from 'preact/hooks'
import type { PulseHistory, PulseHistoryEntry, PulseStatus } from '../../client/index.ts'
import type { PulseClient } from '../../client/pulse.ts'
import { count, duration, percent, plural, when } from '../lib/format.ts'
import { now } from '../lib/service.ts'
import { Button } from '../ui/button.tsx'
import { announce, attempt } from '../ui/overlay.tsx'

const DAY = 24 * 60 * 60 * 1000
const DAYS = 30
const RECENT = 60

/** `late` has the late times alone, as far back as a page goes. */
export type Past = { newest: PulseHistory; late: PulseHistory }

export async function loadPast({ history }: Pick<PulseClient, 'history'>): Promise<Past> {
  const [newest, late] = await Promise.all([
    history({ limit: RECENT }),
    history({ limit: 200, type: 'late' }),
  ])
  return { newest, late }
}

export function History({
  past,
  status,
  monitor,
}: {
  past: Past
  status: PulseStatus
  monitor: Pick<PulseClient, 'history'>
}) {
  const { last24Hours, last7Days, last30Days } = past.newest.uptime
  const shares = [
    ['24 hours', last24Hours],
    ['7 days', last7Days],
    ['30 days', last30Days],
  ] as const
  const hasPings = status.recentHeartbeats.length > 0
  const known = shares.filter(([, share]) => hasPings && share !== null)
  return (
    <section class="card stack past" aria-label="History and uptime">
      <div class="row between">
        <h2>History and uptime</h2>
        <p class="row uptime number">
          {known.map(([name, share]) => (
            <span key={name}>
              <strong>{percent(share ?? 0)}</strong> <span class="small quiet">{name}</span>
            </span>
          ))}
        </p>
      </div>
      <Days late={past.late.entries} status={status} />
      <Runs entries={past.newest.entries} />
      <Log key={past.newest.entries[0]?.at} first={past.newest} monitor={monitor} />
      <p class="small quiet">Our outages are excluded.</p>
    </section>
  )
}

/** The last 30 days: red for the part that it was late, of the part of the day that it has lived. */
function Days({ late, status }: { late: readonly PulseHistoryEntry[]; status: PulseStatus }) {
  const end = now.value
  const today = Math.floor(end / DAY)
  const hasPings = status.recentHeartbeats.length > 0
  const [createdAt, endsAt] = [Date.parse(status.createdAt), Date.parse(status.expiresAt)]
  const days = Array.from({ length: DAYS }, (_, index) => {
    const day = (today - DAYS + 1 + index) * DAY
    const [from, to] = [Math.max(day, createdAt), Math.min(day + DAY, end, endsAt)]
    const lateMs = late.reduce((sum, each) => {
      const began = Math.max(Date.parse(each.at), from)
      const ended = Math.min(each.endedAt === null ? end : Date.parse(each.endedAt), to)
      return sum + Math.max(0, ended - began)
    }, 0)
    return { day, isKnown: hasPings && from < to, lateMs, share: lateMs / (to - from) }
  })
  return (
    <figure class="stack tight">
      <div class="days" role="img" aria-label={wordsOf(days)}>
        {days.map((each) => (
          <span key={each.day} class={each.isKnown ? 'day' : 'day none'} title={titleOf(each)}>
            {each.lateMs > 0 && (
              <span class="late" style={{ height: `${Math.max(15, each.share * 100)}%` }} />
            )}
          </span>
        ))}
      </div>
      <figcaption class="row between small quiet">
        <span>{DAYS} days ago</span>
        <span>Days are in UTC</span>
        <span>Today</span>
      </figcaption>
    </figure>
  )
}

type Day = { day: number; isKnown: boolean; lateMs: number }

function titleOf({ day, isKnown, lateMs }: Day): string {
  const date = new Date(day).toISOString().slice(0, 10)
  if (!isKnown) return `${date}: no data`
  return lateMs === 0 ? `${date}: on time` : `${date}: late for ${duration(lateMs)}`
}

function wordsOf(days: readonly Day[]): string {
  const late = days.filter(({ lateMs }) => lateMs > 0)
  const known = days.filter(({ isKnown }) => isKnown).length
  if (known === 0) return 'The last 30 days: no data yet'
  return `The last ${plural(known, 'day')}: ${late.length === 0 ? 'on time' : late.map(titleOf).join('; ')}`
}

/** The newest pings, oldest first: as high as the run was long, and red if it failed. */
function Runs({ entries }: { entries: readonly PulseHistoryEntry[] }) {
  const pings = entries.filter(({ type }) => type === 'ping' || type === 'failed').toReversed()
  if (pings.length === 0) return null
  const seconds = pings.map(({ run }) => run?.durationSeconds ?? 0)
  const longest = Math.max(...seconds)
  const failed = pings.filter(({ type }) => type === 'failed').length
  const longestWords = longest > 0 ? `, longest run ${duration(longest * 1000)}` : ''
  const words = `${plural(pings.length, 'recent ping')}: ${count(failed)} failed${longestWords}`
  return (
    <figure class="stack tight">
      <div class="runs" role="img" aria-label={words}>
        {pings.map((ping, index) => (
          <span
            key={index}
            class={ping.type === 'failed' ? 'run failed' : 'run'}
            title={entryWords(ping)}
            style={{
              height: `${longest > 0 ? Math.max(12, ((seconds[index] ?? 0) / longest) * 100) : 100}%`,
            }}
          />
        ))}
      </div>
      <figcaption class="small quiet">{words}.</figcaption>
    </figure>
  )
}

/** A log that grows as far back as a person asks. */
function Log({ first, monitor }: { first: PulseHistory; monitor: Pick<PulseClient, 'history'> }) {
  const [{ entries, nextCursor }, show] = useState(first)
  const showOlder = (cursor: string): Promise<void> =>
    attempt(async () => {
      const page = await monitor.history({ limit: RECENT, cursor })
      show({ ...page, entries: [...entries, ...page.entries] })
      const end = page.nextCursor === null ? '; that is all' : ''
      announce(`${count(page.entries.length)} older entries${end}`)
    })
  if (entries.length === 0) {
    return <p class="empty">Nothing has happened yet. The first ping begins the history.</p>
  }
  return (
    <>
      <ol class="number small log" tabIndex={0} aria-label="History">
        {entries.map((entry, index) => (
          <li
            key={index}
            class={entry.type === 'ping' ? '' : entry.type === 'blind' ? 'quiet' : 'bad'}
          >
            {entryWords(entry)}
          </li>
        ))}
      </ol>
      {nextCursor !== null && (
        <div class="row">
          <Button weight="quiet" onClick={() => showOlder(nextCursor)}>
            Show older
          </Button>
        </div>
      )}
    </>
  )
}

const CAUSES = { silence: 'no ping came in time', failure: 'the last run had failed' }

function entryWords({ type, at, endedAt, cause, exitCode, run }: PulseHistoryEntry): string {
  if (type === 'late' || type === 'blind') {
    const what = type === 'late' ? 'Late' : 'The service was unreachable'
    const why = type === 'late' ? `: ${CAUSES[cause ?? 'silence']}` : ''
    return endedAt === null
      ? `${when(at)} · ${what} since then${why}`
      : `${when(at)} · ${what} for ${duration(Date.parse(endedAt) - Date.parse(at))}${why}`
  }
  const durationSeconds = run?.durationSeconds ?? null
  if (type === 'ping' && run === null) return `${when(at)} · Ping`
  const result = type === 'failed' ? 'failed' : 'ok'
  return `${when(at)} · ${runWords({ result, exitCode, durationSeconds })}`
}

type Run = NonNullable<PulseStatus['lastRun']>

/** How a run ended: `Failed with exit code 7 after 3 s`. */
export function runWords({
  result,
  exitCode,
  durationSeconds,
}: Pick<Run, 'result' | 'exitCode' | 'durationSeconds'>): string {
  const code = exitCode === null || exitCode === 0 ? '' : ` with exit code ${exitCode}`
  const took = durationSeconds === null ? '' : ` after ${duration(durationSeconds * 1000)}`
  return `${result === 'ok' ? 'Succeeded' : 'Failed'}${code}${took}`
}
