/** `mayfly pulse history NAME`: what happened to a monitor, newest first, and its uptime. */
import type { PulseHistory, PulseHistoryEntry } from '../../client/index.ts'
import { type Cli, client } from '../cli.ts'
import { whole } from '../declare.ts'
import { misuse } from '../exit.ts'
import { columns, span } from '../text.ts'
import { loadPulse } from '../vault/saved.ts'

/** The most that a page of the service has. */
const PAGE = 200
/** More than any monitor's history has. */
const MAX_ENTRIES = 1_000_000_000

export const addPulseHistory = client({
  command: 'history',
  says: 'show pings, runs, late spells and blind windows of a monitor, and its uptime',
  takes: {
    '<name>': 'the monitor',
    '--limit <count>': ['at most this many, the newest; by default 20', whole(1, MAX_ENTRIES)],
    '--all': 'its whole life',
  },
  examples: ['mayfly pulse history backup', 'mayfly pulse history backup --all > backup.json'],
  async run(cli, { name, all, limit }) {
    if (all && limit !== undefined) throw misuse('Give --limit or --all.')
    const { monitor } = loadPulse(cli, name)
    const most = all ? MAX_ENTRIES : (limit ?? 20)
    const { createdAt } = await monitor.status()
    const { uptime } = await monitor.history({ limit: 1 })
    const entries: PulseHistoryEntry[] = []
    for await (const entry of monitor.historyEntries({ limit: Math.min(most, PAGE) })) {
      entries.push(entry)
      if (entries.length === most) break
    }
    const summary = uptimeSince(uptime, createdAt)
    cli.answer({ uptime, entries }, text(cli, summary, entries))
  },
})

const PERIODS = [
  { share: 'last24Hours', seconds: 86_400, label: '24 h' },
  { share: 'last7Days', seconds: 604_800, label: '7 d' },
  { share: 'last30Days', seconds: 2_592_000, label: '30 d' },
] as const

/** The uptime in words. A monitor that is younger than a period has it of its life, and of no longer period. */
export function uptimeSince(uptime: PulseHistory['uptime'], createdAt: string): string {
  const ageSeconds = (Date.parse(uptime.until) - Date.parse(createdAt)) / 1000
  const told = PERIODS.filter((_, i) => ageSeconds >= (PERIODS[i - 1]?.seconds ?? 0)).flatMap(
    ({ share, seconds, label }) => {
      const period = ageSeconds < seconds ? span(Math.floor(ageSeconds)) : label
      const part = uptime[share]
      return part === null ? [] : [`${percent(part)} over ${period}`]
    },
  )
  return told.length === 0 ? 'no uptime yet' : `uptime ${told.join(', ')}`
}

function text(cli: Cli, summary: string, entries: PulseHistoryEntry[]): string {
  if (entries.length === 0) return `Nothing has happened yet; ${summary}.\n`
  const rows = entries.map((entry) => [entry.at, entry.type, meaning(entry)])
  return `${cli.paint('bold', summary)}\n${columns(rows)}`
}

/** Rounded down, so that only what was never late is 100 %. */
const percent = (share: number): string => `${Math.floor(share * 10_000) / 100} %`

function meaning({ type, at, endedAt, cause, exitCode, run }: PulseHistoryEntry): string {
  if (type === 'late' || type === 'blind') {
    const lasted =
      endedAt === null
        ? 'until now'
        : `for ${span(Math.round((Date.parse(endedAt) - Date.parse(at)) / 1000))}`
    const why =
      type === 'blind' ? 'the service could not receive pings' : CAUSES[cause ?? 'silence']
    return `${lasted}: ${why}`
  }
  const code = exitCode === null ? [] : [`exit code ${exitCode}`]
  const took =
    run?.durationSeconds == null ? [] : [`after ${span(Math.round(run.durationSeconds))}`]
  return [...code, ...took].join(', ')
}

const CAUSES = { silence: 'no ping came in time', failure: 'the last run had failed' }
