/**
 * Finds the monitors that time alone has changed: late, silent, or about to expire. Each has a time to look at it
 * next, in an index, which a ping does not move: a look that comes too early moves it. So a ping costs nothing
 * more, and a scan reads only what is due.
 */
import type { Db } from '../db/db.ts'
import { alone, type InTurn } from '../db/leases.ts'
import type { Clock } from '../lib/clock.ts'
import { nextLookAt } from './state.ts'
import { createPulseStore, type DueMonitor, lookLater } from './store.ts'
import type { Turning } from './turning.ts'
import type { Watch } from './watch.ts'

/** A lateness is noticed within this time, and the time of a scan. */
export const SCAN_EVERY_MS = 2_000
/** Few enough that pings between two batches wait for milliseconds. */
const BATCH = 500
/** Batches of one scan: the next one goes on. */
const MAX_BATCHES = 1_000
/** A monitor that cannot be looked at must not hold up the others. */
const FAILED_WAITS_MS = 10_000

/** Stores what has changed until now. Instances scan in turn, and none takes a turn while no monitor is due. */
export type Scan = (inTurn?: InTurn) => Promise<void>

export function createScan({
  db,
  clock,
  watch,
  turning,
}: {
  db: Db
  clock: Clock
  watch: Pick<Watch, 'notice' | 'fairness'>
  turning: Pick<Turning, 'time'>
}): Scan {
  const store = createPulseStore(db)

  const later = (monitor: DueMonitor, checkAt: number | null) =>
    db.write({
      lockKey: monitor.public_id,
      statements: { monitor: lookLater(monitor, checkAt) },
      // If it is lost, the next look comes too early again.
      durability: 'deferred',
    })

  async function look(monitor: DueMonitor, now: number): Promise<void> {
    const next = nextLookAt(monitor, now, watch.fairness())
    if (next === null || next > now) await later(monitor, next)
    else await turning.time(monitor.public_id)
  }

  async function scan(): Promise<void> {
    for (let batches = 0; batches < MAX_BATCHES && !watch.fairness().isHeld; batches++) {
      const now = clock.now()
      const due = await store.due(now, BATCH)
      const looks = await Promise.allSettled(due.map((monitor) => look(monitor, now)))
      const failed = looks.flatMap((one, i) =>
        one.status === 'rejected' ? [{ monitor: due[i] as DueMonitor, reason: one.reason }] : [],
      )
      await Promise.all(failed.map(({ monitor }) => later(monitor, now + FAILED_WAITS_MS)))
      if (failed[0]) throw failed[0].reason
      if (due.length < BATCH) return
    }
  }

  return async (inTurn = alone) => {
    await watch.notice()
    if (watch.fairness().isHeld) return
    const [first] = await store.due(clock.now(), 1)
    if (first) await inTurn('pulse.scan', SCAN_EVERY_MS, scan)
  }
}
