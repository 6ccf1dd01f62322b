/** A monitor of PULSE with a clock of its own, and its history. */
import assert from 'node:assert/strict'
import type { Db } from '../../src/db/db.ts'
import { createHints } from '../../src/db/hints.ts'
import type { BlindWindow } from '../../src/lib/windows.ts'
import { historyPage, placeOf } from '../../src/pulse/history.ts'
import type { PulseHistory, PulseHistoryEntry } from '../../src/pulse/history-schema.ts'
import { PULSE_PLANS, type PulsePlan } from '../../src/pulse/schema.ts'
import { createPulse } from '../../src/pulse/service.ts'
import type { After } from './folder.ts'
import { provisioned, UNWATCHED } from './pulse-monitor.ts'
import { aMigratedDatabaseUrl, openDatabase } from './store.ts'

export const SECOND = 1_000
export const DAY = 86_400 * SECOND
/** When the monitor begins. */
export const T = Date.UTC(2026, 0, 2, 3, 4, 5, 678)

type Page = { limit?: number; cursor?: string | null; type?: 'late' | null }

/** A monitor of a minute of interval and one of grace. Times are seconds from its beginning. */
export async function aMonitor(t: After, plan: Partial<PulsePlan> = {}) {
  const db = await openDatabase(await aMigratedDatabaseUrl(t))
  t.after(() => db.close())
  let now = T
  let blindWindows: BlindWindow[] = []
  const clock = {
    now: () => now,
    windows: () => blindWindows,
    isHeld: () => false,
    beat: async () => undefined,
  }
  const run = (store: Db) =>
    createPulse({
      db: store,
      hints: createHints(),
      clock,
      ...UNWATCHED,
    })
  const pulse = run(db)
  const bought = { ...PULSE_PLANS.long, minimumGraceSeconds: 60, ...plan }
  const { publicId, ownerToken, pingToken } = await provisioned(db, bought, now)

  async function monitor() {
    const found = await pulse.owned(publicId, ownerToken)
    assert.ok(found)
    return found
  }
  await pulse.change(await monitor(), { expectedIntervalSeconds: 60, graceSeconds: 60 })

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
  const ping = async (service = pulse): Promise<boolean> => {
    const facts = await service.pinged(publicId, pingToken)
    return facts !== null && service.signal(facts, { kind: 'ping', rid: null })
  }
  return {
    ...{ db, clock, run, pulse, monitor, page, ping, publicId },
    at(seconds: number) {
      now = T + seconds * SECOND
    },
    /** Blind windows, in seconds. */
    blind(...windows: [number, number][]) {
      blindWindows = windows.map(([began, ended]) => ({
        ...{ beganAt: T + began * SECOND, endedAt: T + ended * SECOND },
      }))
    },
    async signal(kind: 'start' | number | null, rid: string | null = null) {
      const facts = await pulse.pinged(publicId, pingToken)
      assert.ok(facts)
      const signal =
        kind === 'start'
          ? ({ kind: 'start', rid } as const)
          : ({ kind: 'end', exitCode: kind, rid } as const)
      return pulse.signal(facts, signal)
    },
    /** A ping a minute, from one second to another. */
    async pingsFrom(from: number, to: number) {
      for (let second = from; second < to; second += 60) {
        now = T + second * SECOND
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
      return pulse.purge(now)
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
