/**
 * Counts the requests that an inbox refused, for its owner. A stranger can send as many as they like, so none of
 * them costs a write: they are counted in memory, and the counts go to the store in turns.
 */
import type { Db, Row, Statement } from '../db/db.ts'
import { type Clock, rfc3339 } from '../lib/clock.ts'
import type { CatchRefusals, RefusalReason } from './schema.ts'

/** A count reaches the store within this time. One that is lost in a crash is not older. */
const TURN_MS = 2_000
/** Counts that wait for the store, one for each inbox and reason: about 3 MB. */
const MAX_WAITING = 10_000
/** The rows of one unit. More would hold up the other writes. */
const ROWS_TOGETHER = 100
/** All units that change these rows have this key, and change them in the order of their primary key. */
const LOCK_KEY = 'catch_refusal'

export type Refusals = ReturnType<typeof createRefusals>

type Count = {
  publicId: string
  reason: RefusalReason
  count: number
  firstAt: number
  lastAt: number
}

export function createRefusals({ db, clock }: { db: Db; clock: Clock }) {
  let waiting = new Map<string, Count>()
  let timer: NodeJS.Timeout | undefined
  let turn: Promise<void> = Promise.resolve()

  function add(some: Count): void {
    const key = `${some.publicId} ${some.reason}`
    const known = waiting.get(key)
    if (known) {
      known.count += some.count
      known.firstAt = Math.min(known.firstAt, some.firstAt)
      known.lastAt = Math.max(known.lastAt, some.lastAt)
    } else if (waiting.size < MAX_WAITING) waiting.set(key, some)
    timer ??= setTimeout(takeTurn, TURN_MS).unref()
  }

  /** Writes what is waiting, after the turn under way. */
  function takeTurn(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    turn = turn.then(writeAll)
    return turn
  }

  async function writeAll(): Promise<void> {
    const counts = [...waiting.values()].sort(byPrimaryKey)
    waiting = new Map()
    for (let from = 0; from < counts.length; from += ROWS_TOGETHER) {
      const some = counts.slice(from, from + ROWS_TOGETHER)
      try {
        await db.write({ lockKey: LOCK_KEY, statements: { counts: some.map(addToStored) } })
      } catch {
        // The store is away, which others notice and log. The next turn tries again.
        for (const each of counts.slice(from)) add(each)
        return
      }
    }
  }

  return {
    /** Counts one refused request. */
    count(publicId: string, reason: RefusalReason): void {
      const now = clock.now()
      add({ publicId, reason, count: 1, firstAt: now, lastAt: now })
    },

    /** What was counted for an inbox, by all instances up to their last turn and by this one until now. */
    async of(publicId: string): Promise<CatchRefusals> {
      await takeTurn()
      const rows = await db.read<RefusalRow>(
        `select reason, refusal_count, first_at, last_at from catch_refusal where public_id = $1
         order by refusal_count desc, reason`,
        publicId,
      )
      const reasons = rows.map((row) => ({
        reason: row.reason as RefusalReason,
        count: row.refusal_count,
        firstAt: rfc3339(row.first_at),
        lastAt: rfc3339(row.last_at),
      }))
      return { total: rows.reduce((sum, row) => sum + row.refusal_count, 0), reasons }
    },

    /** Deletes the counts of inboxes that are gone. */
    async purge(): Promise<void> {
      // Read first, because a write would reach the disk even if there is nothing to delete.
      const [some] = await db.read(`select 1 as gone from catch_refusal where ${IS_GONE} limit 1`)
      if (!some) return
      const gone = { text: `delete from catch_refusal where ${IS_GONE}`, values: [] }
      await db.write({ lockKey: LOCK_KEY, statements: { gone } })
    },

    /** Writes what was counted, and stops. */
    async close(): Promise<void> {
      await takeTurn()
      clearTimeout(timer)
    },
  }
}

const IS_GONE = `not exists (
  select 1 from catch_inbox where catch_inbox.public_id = catch_refusal.public_id)`

type RefusalRow = {
  reason: string
  refusal_count: number
  first_at: number
  last_at: number
} & Row

/** Adds to what is stored, unless the inbox is gone. */
const addToStored = ({ publicId, reason, count, firstAt, lastAt }: Count): Statement => ({
  text: `insert into catch_refusal (public_id, reason, refusal_count, first_at, last_at)
    select $1, $2, $3, $4, $5 from catch_inbox join catch_inbox_use using (number)
    where public_id = $1 and destroyed_at is null
    on conflict (public_id, reason) do update set
      refusal_count = catch_refusal.refusal_count + excluded.refusal_count,
      first_at = case when excluded.first_at < catch_refusal.first_at
        then excluded.first_at else catch_refusal.first_at end,
      last_at = case when excluded.last_at > catch_refusal.last_at
        then excluded.last_at else catch_refusal.last_at end`,
  values: [publicId, reason, count, firstAt, lastAt],
})

/** No two of them are the same. */
const byPrimaryKey = (one: Count, other: Count): number =>
  `${one.publicId} ${one.reason}` < `${other.publicId} ${other.reason}` ? -1 : 1
