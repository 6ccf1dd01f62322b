/**
 * Rate limits that several instances share, in PostgreSQL. Each instance decides at once by the counts that it knows, and
 * adds its own to the store ten times a second, so that no request waits for them. No money depends on the limits:
 * while the store does not answer, each instance counts alone.
 */
import { type Db, limitedTo } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import { messageOf } from '../lib/errors.ts'
import { keyedHash } from '../secrets/secrets.ts'
import { createWindows, type OpenBucket } from './limits.ts'

const SHARE_EVERY_MS = 100
/** Only a key that has used more than this part of its burst is shared. Most keys never do. */
const SHARED_FROM = 0.2
/** Keys that are shared at a time; the others wait for the next. */
const MAX_SHARED_KEYS = 1_000
/** With more keys than this, what is not shared yet is dropped: each instance still has its own counts. */
const MAX_PENDING_KEYS = 10_000
const PURGE_ROWS = 1_000

/** What a key has used that is not in the store yet. */
type Pending = {
  count: number
  /** When its window ends here. */
  endsAt: number
  /** Takes over the count of all instances. */
  learn(points: number, msLeft: number): void
}

/** @param deps.secret hashes the keys: the rows hold no addresses and no ids. */
export function createSharedLimits({
  db,
  clock,
  secret,
  onAway,
  onBack,
}: {
  db: Pick<Db, 'write'>
  clock: Clock
  secret: Uint8Array
  /** The store does not answer. Called once, until it answers again. */
  onAway(reason: string): void
  onBack(): void
}) {
  const pending = new Map<string, Pending>()
  let timer: NodeJS.Timeout | undefined
  let isAway = false

  async function share(): Promise<void> {
    const some = new Map([...pending].slice(0, MAX_SHARED_KEYS))
    // A count that cannot be added is dropped: this instance has it already.
    for (const key of some.keys()) pending.delete(key)
    try {
      for (const { key, points, expire } of await addTo(db, some, clock.now())) {
        const since = pending.get(key)?.count ?? 0
        const msLeft = expire - clock.now()
        // A window that is over is not begun again.
        if (msLeft > 0) some.get(key)?.learn(points + since, msLeft)
      }
      if (isAway) onBack()
      isAway = false
    } catch (error) {
      if (!isAway) onAway(messageOf(error))
      isAway = true
    }
    timer = undefined
    if (pending.size > 0) shareSoon()
  }

  function shareSoon(): void {
    timer ??= setTimeout(share, SHARE_EVERY_MS).unref()
  }

  const openBucket: OpenBucket = (limit) => {
    const { name, burst } = limit
    const local = createWindows(limit)
    const threshold = Math.max(1, Math.ceil(burst * SHARED_FROM))

    function add(key: string, count: number, msLeft: number): void {
      if (pending.size >= MAX_PENDING_KEYS) pending.clear()
      const hashed = keyedHash(secret, name, key).subarray(0, 16).toString('base64url')
      const before = pending.get(`${name}:${hashed}`)?.count ?? 0
      pending.set(`${name}:${hashed}`, {
        count: before + count,
        endsAt: clock.now() + Math.ceil(msLeft),
        learn: (points, msLeft) => local.learn(key, points, msLeft),
      })
      shareSoon()
    }

    return (key) => {
      const taken = local.take(key)
      const used = burst - taken.remaining
      // Reaching the threshold adds what was used below it.
      if (!taken.isRefused && used >= threshold) {
        add(key, used === threshold ? threshold : 1, taken.msLeft)
      }
      return taken
    }
  }

  return {
    openBucket,
    /** Shares nothing more: the store closes next. */
    close(): void {
      clearTimeout(timer)
      pending.clear()
    },
  }
}

type Shared = { key: string; points: number; expire: number }

/** Adds to the counts of all instances. @returns what they are now, and when their windows end. */
async function addTo(
  db: Pick<Db, 'write'>,
  some: ReadonlyMap<string, Pending>,
  now: number,
): Promise<Shared[]> {
  const counted = Array.from(some, ([key, { count, endsAt }]) => ({
    key,
    points: count,
    expire: endsAt,
  }))
  const { rows } = await db.write({
    lockKey: 'rate_limit',
    durability: 'deferred',
    statements: {
      rows: {
        // In the order of their keys, so that two instances never wait for each other in a circle.
        text: `insert into rate_limit as known (key, points, expire)
          select key, points, expire
          from json_to_recordset(cast($1 as json)) as counted(key text, points bigint, expire bigint)
          order by key
          on conflict (key) do update set
            points = excluded.points + case when known.expire > $2 then known.points else 0 end,
            expire = case when known.expire > $2 then known.expire else excluded.expire end
          returning key, points, expire`,
        values: [JSON.stringify(counted), now],
      },
    },
  })
  return rows as Shared[]
}

/** Deletes the counts of windows that have ended. */
export async function purgeLimits(db: Db, now: number): Promise<void> {
  for (;;) {
    const { deleted } = await db.write({
      lockKey: 'rate_limit',
      statements: {
        deleted: {
          // Said twice, because on PostgreSQL only the outer condition is asked again of a row that was just changed.
          text: `delete from rate_limit where expire < $1 and key in (
            select key from rate_limit where expire < $1 ${limitedTo(2)}) returning key`,
          values: [now, PURGE_ROWS],
        },
      },
    })
    if (deleted.length < PURGE_ROWS) return
  }
}
