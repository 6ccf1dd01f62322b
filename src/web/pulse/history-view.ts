/** The history of a monitor's whole life: its uptime, and a list that grows as far back as a person asks. */
import type { PulseHistory, PulseHistoryEntry } from '../../client/index.ts'
import type { PulseClient } from '../../client/pulse.ts'
import { announce, button } from '../components.ts'
import { el, fill } from '../dom.ts'
import { count, duration, moment } from '../format.ts'
import { attempt } from '../live.ts'

const PAGE = 50
const CAUSES = { silence: 'no ping came in time', failure: 'the last run had failed' }

export async function historyView({ history }: Pick<PulseClient, 'history'>): Promise<HTMLElement> {
  const uptime = el('dl', { class: 'facts' })
  const summary = el('p', { class: 'small quiet' })
  const list = el('ol', { class: 'number small', tabindex: '0', 'aria-label': 'History' })
  const older = button('Show older', showOlder, { kind: 'small' })
  const again = button('Look again', () => attempt(start), { kind: 'small' })
  let cursor: string | null = null

  async function start(): Promise<void> {
    const page = await history({ limit: PAGE })
    fill(uptime, ...uptimeParts(page.uptime))
    fill(list)
    add(page)
    summary.textContent =
      page.entries.length === 0
        ? 'Nothing has happened yet. The first ping begins the history.'
        : 'Newest first. Times in which the service could not receive pings count neither way.'
    list.hidden = page.entries.length === 0
  }

  function add({ entries, nextCursor }: PulseHistory): void {
    list.append(...entries.map((entry) => el('li', {}, wordsOf(entry))))
    cursor = nextCursor
    older.hidden = nextCursor === null
  }

  async function showOlder(): Promise<void> {
    await attempt(async () => {
      if (cursor === null) return
      const page = await history({ limit: PAGE, cursor })
      add(page)
      // The keyboard must not lose its place with the button.
      if (older.hidden) list.focus()
      announce(`${count(page.entries.length)} older entries${older.hidden ? '; that is all' : ''}`)
    })
  }

  await start()
  return el(
    'div',
    { class: 'stack life' },
    uptime,
    summary,
    list,
    el('div', { class: 'row' }, older, again),
  )
}

function uptimeParts({
  last24Hours,
  last7Days,
  last30Days,
}: PulseHistory['uptime']): HTMLElement[] {
  const shares: [string, number | null][] = [
    ['On time, 24 h', last24Hours],
    ['7 days', last7Days],
    ['30 days', last30Days],
  ]
  return shares.flatMap(([name, share], index) =>
    share === null && index > 0
      ? []
      : [el('dt', {}, name), el('dd', { class: 'number' }, share === null ? '–' : percent(share))],
  )
}

/** Rounded down: only what was never late is 100 %. */
const percent = (share: number): string => `${Math.floor(share * 10_000) / 100} %`

function wordsOf({ type, at, endedAt, cause, exitCode, run }: PulseHistoryEntry): string {
  if (type === 'late' || type === 'blind') {
    const lasts = endedAt === null
    const what = type === 'late' ? 'Late' : 'The service was unreachable'
    const why = type === 'late' ? `: ${CAUSES[cause ?? 'silence']}` : ''
    return lasts
      ? `${what} since ${moment(at)}${why}`
      : `${what} from ${moment(at)}, for ${duration(Date.parse(endedAt) - Date.parse(at))}${why}`
  }
  const seconds = run?.durationSeconds ?? null
  const took = seconds === null ? '' : ` after ${duration(seconds * 1000)}`
  if (type === 'failed') {
    const code = exitCode === null ? '' : ` with exit code ${exitCode}`
    return `A run failed${code}${took}, ${moment(at)}`
  }
  return run === null ? `Ping, ${moment(at)}` : `A run succeeded${took}, ${moment(at)}`
}
