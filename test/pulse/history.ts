/** A monitor of PULSE with a clock of its own, and its history. */
import assert from 'node:assert/strict'
import { historyPage, placeOf } from '../../src/pulse/history.ts'
import type { PulseHistory, PulseHistoryEntry } from '../../src/pulse/history-schema.ts'
import { PULSE_PLANS, type PulsePlan } from '../../src/pulse/schema.ts'
import type { After } from '../support/folder.ts'
import { aMonitor as aPulseMonitor, SECOND, T } from '../support/pulse-monitor.ts'

export { DAY, SECOND, T } from '../support/pulse-monitor.ts'

type Page = { limit?: number; cursor?: string | null; type?: 'late' | null }

/** A monitor of a minute of interval and one of grace. Times are seconds from its beginning. */
export async function aMonitor(t: After, plan: Partial<PulsePlan> = {}) {
  const one = await aPulseMonitor(t, { ...PULSE_PLANS.long, minimumGraceSeconds: 60, ...plan })
  const { db, clock, pulse, monitor } = one
  await one.change({ expectedIntervalSeconds: 60, graceSeconds: 60 })

  async function page({
    limit = 100,
    cursor = null,
    type = null,
  }: Page = {}): Promise<PulseHistory> {
    const place = cursor === null ? null : placeOf(cursor)
    assert.ok(cursor === null || place)
    const found = await historyPage({ db, clock }, await monitor(), { limit, place, type })
    assert.ok(found)
    return found
  }
  const ping = (by = pulse): Promise<boolean> => one.ping({ by })
  const at = (seconds: number): void => one.at(seconds * SECOND)
  return {
    ...one,
    page,
    ping,
    at,
    signal: (kind: 'start' | number | null, rid: string | null = null) =>
      one.signal(kind === 'start' ? { kind, rid } : { kind: 'end', exitCode: kind, rid }),
    /** A ping a minute, from one second to another. */
    async pingsFrom(from: number, to: number) {
      for (let second = from; second < to; second += 60) {
        at(second)
        assert.ok(await ping())
      }
    },
    async all(limit = 100): Promise<PulseHistoryEntry[]> {
      const entries: PulseHistoryEntry[] = []
      let cursor: string | null = null
      do {
        assert.ok(entries.length < 5000, 'the pages end')
        const { entries: some, nextCursor } = await page({ limit, cursor })
        entries.push(...some)
        cursor = nextCursor
      } while (cursor !== null)
      return entries
    },
    async purge() {
      await pulse.scan()
      return one.purge()
    },
    async rowsLeft() {
      const tables = ['pulse_ping', 'pulse_late_spell']
      const counts = await Promise.all(
        tables.map((table) => db.read(`select count(*) as n from ${table}`)),
      )
      return counts.map(([row]) => Number(row?.n))
    },
  }
}

/** A time in seconds from the beginning of the monitor. */
export const seconds = (time: string | null): number | null =>
  time === null ? null : (Date.parse(time) - T) / SECOND

/** An entry in short: its type, when it began, and when it ended or how its run did. */
function short({ type, at, endedAt, cause, exitCode, run }: PulseHistoryEntry): unknown[] {
  if (type === 'late') return [type, seconds(at), seconds(endedAt), cause]
  if (type === 'blind') return [type, seconds(at), seconds(endedAt)]
  return [type, seconds(at), ...(run ? [exitCode, run.durationSeconds] : [])]
}
/** Entries in short. */
export const shortOf = (entries: PulseHistoryEntry[]) => entries.map(short)
