/** Metrics of the store's content, counted by queries at each scrape. */
import type { Db } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import type { Instruments, LabelledValues } from './instruments.ts'

/** Each query runs at most this often, with any number of scrapers. */
const QUERY_INTERVAL_MS = 15_000

export type Stored = { db: Pick<Db, 'scan'>; clock: Clock }

export function watchStored({ gaugeBy }: Instruments, { db, clock }: Stored): void {
  /** The values of a query by label, and a zero for each known label that has none. */
  function stored(
    [name, help]: [name: string, help: string],
    { label, known, text }: { label: string; known: string[]; text: string },
  ): void {
    const query = async (): Promise<LabelledValues> => {
      const rows = await db.scan<{ label: string; value: number }>({ text, values: [] })
      const values = rows.map(({ label, value }) => [label, Number(value)] as const)
      return new Map([...known.map((one) => [one, 0] as const), ...values])
    }
    gaugeBy(name, help, { label, read: atIntervals(clock, query) })
  }

  stored(['orders', 'Orders in the store, by state.'], {
    label: 'state',
    known: ['pending', 'settled', 'dead', 'paid_unfulfilled', 'refunded'],
    // The index on the state covers this query.
    text: 'select state as label, count(*) as value from purchase_order group by state',
  })
  stored(['whisper_unpaid_bytes', 'Bytes of unpaid WHISPERs, by part of the room.'], {
    label: 'part',
    known: ['common', 'small'],
    text: 'select part as label, byte_count as value from whisper_unpaid',
  })
}

/** Repeats the last result until the interval is over; null while the store fails. */
function atIntervals(
  clock: Clock,
  query: () => Promise<LabelledValues>,
): () => Promise<LabelledValues | null> {
  let queriedAt = Number.NEGATIVE_INFINITY
  let last: Promise<LabelledValues | null> = Promise.resolve(null)
  return () => {
    const now = clock.now()
    const isFresh = now >= queriedAt && now - queriedAt < QUERY_INTERVAL_MS
    if (isFresh) return last
    queriedAt = now
    last = query().catch(() => null)
    return last
  }
}
