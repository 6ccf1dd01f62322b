/**
 * Counts the pings that reach the service, on all instances together, and looks whether far fewer come than are due.
 * A ping costs an addition in memory: the counts go to the store every few seconds. What is due is read from the index
 * of deadlines, in samples, and only if few pings have come.
 */
import type { Db, Row, Statement } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { PulseListener } from './changes.ts'
import { judge, type MissedPing, SPAN_MS } from './doubt.ts'
import { expectedOf } from './state.ts'
import { createPulseStore, type DueMonitor } from './store.ts'
import type { Watch } from './watch.ts'

export const COUNT_EVERY_MS = 5_000
/** More than the buckets of the two minutes that are compared. */
const SLOTS = 32
/** The first sample of the deadlines has those that have passed or pass soon, and all of a service with few monitors. */
const SAMPLE = 200
/** Where other samples begin, from now on: those have longer graces. */
const LATER_SAMPLES_FROM_MS = [15_000, 60_000, 5 * 60_000, 30 * 60_000] as const
/** So many pings cannot be fewer than a tenth of those in the samples. */
const ENOUGH_ARRIVED = ((1 + LATER_SAMPLES_FROM_MS.length) * SAMPLE) / 9
/** Somebody has pinged this recently, so that nothing seems to be broken. */
const RECENT_MS = 3 * COUNT_EVERY_MS

type Counts = { arrived: number; missed: number }

export type Arrivals = {
  /** Counts a ping that reached this instance, whether or not it can be recorded. */
  arrived(): void
  /** Counts the monitors that have become late. */
  listener: PulseListener
  /** Stores the counts of this instance, and judges those of all. */
  look(): Promise<void>
}

export function createArrivals({
  db,
  clock,
  watch,
  log,
}: {
  db: Pick<Db, 'read' | 'write'>
  clock: Clock
  watch: Pick<Watch, 'doubt' | 'suspect'>
  log: Log
}): Arrivals {
  const store = createPulseStore(db)
  /** By the beginning of their five seconds. What the store refuses stays for the next time. */
  const counts = new Map<number, Counts>()
  let arrivedAt = 0
  let wasDoubtful = false

  function countsAt(time: number): Counts {
    const bucketAt = bucketOf(time)
    let found = counts.get(bucketAt)
    if (!found) {
      found = { arrived: 0, missed: 0 }
      counts.set(bucketAt, found)
    }
    return found
  }

  async function storeCounts(now: number): Promise<void> {
    const taken = [...counts]
    counts.clear()
    if (taken.length === 0) return
    try {
      await db.write({
        lockKey: 'pulse_beat',
        statements: {
          counts: taken
            .filter(([bucketAt]) => bucketAt > now - SPAN_MS - COUNT_EVERY_MS)
            .map(([bucketAt, some]) => addCounts(bucketAt, some)),
          last: { text: PINGED, values: [arrivedAt] },
        },
        durability: 'deferred',
      })
    } catch (error) {
      for (const [bucketAt, { arrived, missed }] of taken) {
        const again = countsAt(bucketAt)
        again.arrived += arrived
        again.missed += missed
        // An outage of the store must not fill the memory.
        if (bucketAt <= now - SPAN_MS - COUNT_EVERY_MS) counts.delete(bucketAt)
      }
      throw error
    }
  }

  /** Samples of the pings that have not come, of monitors that are not late yet. */
  async function missedPings(now: number): Promise<MissedPing[]> {
    const first = await store.upcoming(0, SAMPLE)
    const hasAll = first.length < SAMPLE
    const others = await Promise.all(
      (hasAll ? [] : LATER_SAMPLES_FROM_MS).map((from) => store.upcoming(now + from, SAMPLE)),
    )
    const monitors = new Map(
      [...first, ...others.flat()].map((monitor) => [monitor.public_id, monitor]),
    )
    return [...monitors.values()].map(missedPing).filter((missed) => missed !== null)
  }

  return {
    arrived() {
      arrivedAt = clock.now()
      countsAt(arrivedAt).arrived += 1
    },

    listener: {
      onChange: () => [],
      onGone: () => [],
      onStored(changes) {
        for (const { type, monitor, at } of changes) {
          const missed = type === 'late' ? missedPing(monitor) : null
          if (missed && missed.dueAt > at - SPAN_MS) countsAt(missed.dueAt).missed += 1
        }
      },
    },

    async look() {
      const now = clock.now()
      await storeCounts(now)
      const [buckets, windows, [beat]] = await Promise.all([
        db.read(BUCKETS, now - SPAN_MS - COUNT_EVERY_MS, now + COUNT_EVERY_MS),
        db.read(WINDOWS, now),
        db.read('select pinged_at from pulse_beat'),
      ])
      const arrivedCount = buckets.reduce((sum, row) => sum + Number(row.arrived_count), 0)
      const lastAt = Math.min(Number(beat?.pinged_at ?? 0), now)
      const isBusy = arrivedCount > ENOUGH_ARRIVED && lastAt > now - RECENT_MS
      const verdict = judge({
        ...{ now, arrivedCount, arrivedAt: lastAt, windows: windows.map(windowOf).reverse() },
        missed: isBusy ? [] : [...buckets.flatMap(lateOnes), ...(await missedPings(now))],
      })
      const { window, isDoubtful, isHeld, dueCount } = verdict
      watch.suspect({ isDoubtful, isHeld })
      if (window) await watch.doubt({ ...window, cause: 'arrivals' })
      if (isDoubtful && !wasDoubtful) {
        log.warn({ event: 'pulse.pings_missing', arrivedCount, dueCount })
      }
      if (!isDoubtful && wasDoubtful) log.info({ event: 'pulse.pings_back' })
      wasDoubtful = isDoubtful
    },
  }
}

const bucketOf = (time: number): number => time - (time % COUNT_EVERY_MS)

/** By the ping itself, not by what windows have made of its deadline: it is due only once. */
function missedPing(monitor: DueMonitor): MissedPing | null {
  const expected = expectedOf(monitor)
  if (expected === null || monitor.accepted_heartbeat_count >= monitor.heartbeat_limit) return null
  const { nextExpectedAt: expectedAt, graceMs } = expected
  return { expectedAt, dueAt: expectedAt + graceMs / 2 }
}

const lateOnes = ({ bucket_at, missed_count }: Row): MissedPing[] =>
  Array.from({ length: Number(missed_count) }, () => ({
    expectedAt: Number(bucket_at),
    dueAt: Number(bucket_at),
  }))

const windowOf = ({ began_at, ended_at, cause }: Row) => ({
  ...{ beganAt: Number(began_at), endedAt: Number(ended_at) },
  isOfArrivals: cause === 'arrivals',
})

const addCounts = (bucketAt: number, { arrived, missed }: Counts): Statement => ({
  text: `insert into pulse_arrival (slot, bucket_at, arrived_count, missed_count) values ($1, $2, $3, $4)
    on conflict (slot) do update set bucket_at = excluded.bucket_at,
      arrived_count = excluded.arrived_count +
        case when pulse_arrival.bucket_at = excluded.bucket_at then pulse_arrival.arrived_count else 0 end,
      missed_count = excluded.missed_count +
        case when pulse_arrival.bucket_at = excluded.bucket_at then pulse_arrival.missed_count else 0 end`,
  values: [(bucketAt / COUNT_EVERY_MS) % SLOTS, bucketAt, arrived, missed],
})

const PINGED = 'update pulse_beat set pinged_at = $1 where pinged_at < $1'

const BUCKETS =
  'select bucket_at, arrived_count, missed_count from pulse_arrival where bucket_at > $1 and bucket_at < $2'

/** The newest, of which the newest that arrivals have made may be a day old. */
const WINDOWS = `select began_at, ended_at, cause from pulse_blind_window where ended_at <= $1
  order by ended_at desc limit 20`
