/**
 * Rate limits that several instances share, in PostgreSQL. No money depends on them, so each instance counts
 * alone while the store does not answer.
 */
import { Pool, types } from 'pg'
import { RateLimiterMemory, RateLimiterPostgres } from 'rate-limiter-flexible'
import { type Db, limitedTo } from '../db/db.ts'
import { messageOf } from '../lib/errors.ts'
import { keyedHash } from '../secrets/secrets.ts'
import { type Bucket, type Limit, type OpenBucket, resultOf, windowSeconds } from './limits.ts'

const TABLE = 'rate_limit'
const CONNECTIONS = 4
/** A request waits at most this long for a limit. */
const QUERY_TIMEOUT_MS = 1_000
/** Queries that may wait for a connection. */
const MAX_QUEUED_QUERIES = 500
/** After a failed query the store is not asked for this long, so that requests do not queue for it. */
const BACKOFF_MS = 1_000
const SYNC_INTERVAL_MS = 100
/** Only a key that has used more than this part of its burst is synced. Most keys never do. */
const SYNC_THRESHOLD = 0.2
/** Keys synced in one interval; the others wait for the next. */
const SYNC_BATCH_KEYS = 200
/** With more keys than this, the pending counts are dropped: each instance still has its own counts. */
const MAX_PENDING_KEYS = 10_000
const PURGE_ROWS = 1_000

export type SharedLimits = { openBucket: OpenBucket; close(): Promise<void> }

export type SharedLimitsReport = {
  /** The store does not answer. Called once, until it answers again. */
  onAway(reason: string): void
  onBack(): void
}

/** The server that takes writes. */
export type LimitsServer = {
  lastUrl(): string
  /** Calls `listener` whenever another server has taken over. Returns a function that stops. */
  onMoved(listener: () => void): () => void
}

/** @param secret hashes the keys: the rows hold no addresses and no ids. */
export function openSharedLimits(
  server: LimitsServer,
  secret: Uint8Array,
  report: SharedLimitsReport,
): SharedLimits {
  const store = openStore(server, report)
  const closing: (() => void)[] = []

  function postgres(limit: Limit, insurance?: RateLimiterMemory) {
    return new RateLimiterPostgres({
      storeClient: store,
      storeType: 'client',
      tableName: TABLE,
      tableCreated: true,
      clearExpiredByTimeout: false,
      keyPrefix: limit.name,
      points: limit.burst,
      duration: windowSeconds(limit),
      // A key that has used up its window is refused without a query until the next one.
      inMemoryBlockOnConsumed: limit.burst,
      ...(insurance ? { insuranceLimiter: insurance } : {}),
    })
  }

  const hashed = ({ name }: Limit, key: string): string =>
    keyedHash(secret, name, key).subarray(0, 16).toString('base64url')

  /** Counts each request in the store before it is answered. */
  function openSync(limit: Limit): Bucket {
    const limiter = postgres(limit, memory(limit))
    return (key) => resultOf(limiter.consume(hashed(limit, key)))
  }

  /** Counts in this instance, and adds the counts to those in the store afterwards. */
  function openAsync(limit: Limit): Bucket {
    const local = memory(limit)
    const shared = postgres(limit)
    const threshold = Math.max(1, Math.ceil(limit.burst * SYNC_THRESHOLD))
    /** By key, the count that is not in the store yet. */
    const pending = new Map<string, number>()
    let timer: NodeJS.Timeout | null = null
    closing.push(() => timer && clearTimeout(timer))

    async function sync(key: string, count: number): Promise<void> {
      const { consumedPoints, msBeforeNext } = await shared.penalty(hashed(limit, key), count)
      // From here on the local count includes those of all instances.
      await local.set(key, consumedPoints + (pending.get(key) ?? 0), msBeforeNext / 1000)
    }

    async function syncBatch(): Promise<void> {
      const batch = [...pending].slice(0, SYNC_BATCH_KEYS)
      for (const [key] of batch) pending.delete(key)
      // A count that could not be added is dropped: this instance has it already.
      await Promise.allSettled(batch.map(([key, count]) => sync(key, count)))
      timer = null
      if (pending.size > 0) scheduleSync()
    }

    function scheduleSync(): void {
      timer ??= setTimeout(() => void syncBatch(), SYNC_INTERVAL_MS).unref()
    }

    return async (key) => {
      const result = await resultOf(local.consume(key))
      const used = limit.burst - result.remainingPoints
      if (result.isRefused || used < threshold) return result
      if (pending.size >= MAX_PENDING_KEYS) pending.clear()
      // Reaching the threshold adds what was used below it.
      pending.set(key, (pending.get(key) ?? (used === threshold ? threshold - 1 : 0)) + 1)
      scheduleSync()
      return result
    }
  }

  return {
    openBucket: (limit) => (limit.isSharedAsync ? openAsync(limit) : openSync(limit)),
    async close() {
      for (const close of closing) close()
      await store.close()
    },
  }
}

/** Deletes the counts of windows that have ended. */
export async function purgeLimits(db: Db, now: number): Promise<void> {
  for (;;) {
    const { deleted } = await db.write({
      lockKey: 'rate_limit',
      statements: {
        deleted: {
          text: `delete from rate_limit where key in (
            select key from rate_limit where expire < $1 ${limitedTo(2)}) returning key`,
          values: [now, PURGE_ROWS],
        },
      },
    })
    if (deleted.length < PURGE_ROWS) return
  }
}

const memory = ({ name, ...rate }: Limit): RateLimiterMemory =>
  new RateLimiterMemory({ keyPrefix: name, points: rate.burst, duration: windowSeconds(rate) })

type Query = { name?: string; text: string; values?: unknown[] }

/** A small connection pool for the limits. It fails at once while the store is away or busy. */
function openStore(server: LimitsServer, { onAway, onBack }: SharedLimitsReport) {
  let pool = openPool(server.lastUrl())
  let backoffUntil = 0
  let isAway = false
  const stopFollowing = server.onMoved(() => {
    const former = pool
    pool = openPool(server.lastUrl())
    former.end().catch(() => undefined)
  })

  return {
    async query(query: Query) {
      if (performance.now() < backoffUntil) throw new Error('the limits back off')
      if (pool.waitingCount >= MAX_QUEUED_QUERIES) throw new Error('the limits are busy')
      try {
        const values = query.values?.map(rounded)
        const result = await pool.query({ ...query, ...(values ? { values } : {}) })
        if (isAway) {
          isAway = false
          onBack()
        }
        return result
      } catch (error) {
        backoffUntil = performance.now() + BACKOFF_MS
        if (!isAway) {
          isAway = true
          onAway(messageOf(error))
        }
        throw error
      }
    },
    close() {
      stopFollowing()
      return pool.end()
    },
  }
}

function openPool(url: string): Pool {
  const pool = new Pool({
    connectionString: url,
    application_name: 'mayfly limits',
    max: CONNECTIONS,
    connectionTimeoutMillis: QUERY_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
    keepAlive: true,
    types: { getTypeParser: (oid, format) => parserOf(oid, format) },
    // Losing a few counts in a crash is fine: no commit waits for the disk.
    onConnect: async (client) => void (await client.query('set synchronous_commit = off')),
  })
  pool.on('error', () => undefined)
  return pool
}

/** The library passes fractions of milliseconds; the columns are integers. */
const rounded = (value: unknown): unknown => (typeof value === 'number' ? Math.round(value) : value)

const INT8 = types.builtins.INT8

function parserOf(oid: number, format?: 'text' | 'binary') {
  return oid === INT8 ? Number : types.getTypeParser(oid, format as 'text')
}
