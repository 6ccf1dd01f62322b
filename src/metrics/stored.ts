/** Metrics of the store's content, counted by queries at each scrape. */
import type { Db } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import type { Instruments, LabelledValues } from './instruments.ts'

/** Each query runs at most this often, with any number of scrapers. */
const QUERY_INTERVAL_MS = 15_000

const ORDER_STATES = ['pending', 'settled', 'dead', 'paid_unfulfilled', 'refunded']
const UNPAID_PARTS = ['common', 'small']

export type Stored = { db: Pick<Db, 'scan'>; clock: Clock }

export function watchStored({ gaugeBy }: Instruments, { db, clock }: Stored): void {
  gaugeBy('orders', 'Orders in the store, by state.', {
    label: 'state',
    // The index on the state covers this query.
    read: atIntervals(clock, async () => {
      const rows = await db.scan<{ state: string; orders: number }>({
        text: 'select state, count(*) as orders from purchase_order group by state',
        values: [],
      })
      return withZeros(
        ORDER_STATES,
        rows.map(({ state, orders }) => [state, Number(orders)] as const),
      )
    }),
  })
  gaugeBy(
    'whisper_unpaid_bytes',
    'Bytes of WHISPER that wait for their payment, by part of the room.',
    {
      label: 'part',
      read: atIntervals(clock, async () => {
        const rows = await db.scan<{ part: string; byte_count: number }>({
          text: 'select part, byte_count from whisper_unpaid',
          values: [],
        })
        return withZeros(
          UNPAID_PARTS,
          rows.map(({ part, byte_count }) => [part, Number(byte_count)] as const),
        )
      }),
    },
  )
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

/** The values, and a zero for each label that has no value. */
function withZeros(labels: string[], values: (readonly [string, number])[]): LabelledValues {
  return new Map([...labels.map((label) => [label, 0] as const), ...values])
}
