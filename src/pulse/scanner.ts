/**
 * Finds the monitors that time alone has changed: late, silent, or about to expire. Each has a time to look at it
 * next, in an index, which a ping does not move: a look that comes too early moves it. So a ping costs nothing
 * more, and a scan reads only what is due.
 */
import type { Db } from '../db/db.ts'
import { alone, type InTurn } from '../db/leases.ts'
import type { ServiceClock } from '../lib/clock.ts'
import { type Bound, isFallingSilent, nextLookAt } from './state.ts'
import { createPulseStore, type DueMonitor, lookLater } from './store.ts'
import type { Turning } from './turning.ts'

/** A lateness is noticed within this time, and the time of a scan. */
export const SCAN_EVERY_MS = 2_000
/** Few enough that pings between two batches wait for milliseconds. */
const BATCH = 500
/** Batches of one scan: the next one goes on. */
const MAX_BATCHES = 1_000
/** A monitor that cannot be looked at, or must stay shut for now, must not hold up the others. */
const LATER_MS = 10_000

const NOTHING: Bound = { timings: [], waitMs: 0 }

/** Stores what has changed until now. Instances scan in turn, and none takes a turn while no monitor is due. */
export type Scan = (inTurn?: InTurn) => Promise<void>

export function createScan({
  db,
  clock,
  boundTo,
  turning,
}: {
  db: Db
  clock: Pick<ServiceClock, 'now' | 'windows' | 'beat'>
  boundTo: (publicId: string) => Promise<Bound>
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
    const { public_id: publicId } = monitor
    const bound = isFallingSilent(monitor) ? await boundTo(publicId) : NOTHING
    const next = nextLookAt(monitor, now, { windows: clock.windows(), bound })
    if (next === null || next > now) return void (await later(monitor, next))
    // While the clock is held, no silence is stored.
    if (!(await turning.time(publicId))) await later(monitor, now + LATER_MS)
  }

  async function scan(): Promise<void> {
    for (let batches = 0; batches < MAX_BATCHES; batches++) {
      // Another instance may know already that the clock went back, and have set the pings back with it.
      await clock.beat()
      const now = clock.now()
      const due = await store.due(now, BATCH)
      const looks = await Promise.allSettled(due.map((monitor) => look(monitor, now)))
      const failed = looks.flatMap((one, i) =>
        one.status === 'rejected' ? [{ monitor: due[i] as DueMonitor, reason: one.reason }] : [],
      )
      await Promise.all(failed.map(({ monitor }) => later(monitor, now + LATER_MS)))
      if (failed[0]) throw failed[0].reason
      if (due.length < BATCH) return
    }
  }

  return async (inTurn = alone) => {
    const [first] = await store.due(clock.now(), 1)
    if (first) await inTurn('pulse.scan', SCAN_EVERY_MS, scan)
  }
}
