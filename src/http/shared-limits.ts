/**
 * Rate limits that several instances share, in PostgreSQL. A limit is a courtesy, not money: when
 * the store does not answer, each instance goes on counting by itself.
 */
import { Pool, types } from 'pg'
import { RateLimiterMemory, RateLimiterPostgres } from 'rate-limiter-flexible'
import type { Db } from '../db/db.ts'
import { messageOf } from '../lib/errors.ts'
import { keyedHash } from '../secrets/secrets.ts'
import {
  type Bucket,
  type LimitName,
  type OpenBucket,
  type Rate,
  taken,
  windowSeconds,
} from './limits.ts'

const TABLE = 'rate_limit'
const CONNECTIONS = 4
/** A request waits no longer for this than it takes to notice. */
const ANSWER_MS = 1_000
const WAITING_MOST = 500
/** After a failure the store is left alone for so long, so that requests do not queue up for it. */
const REST_MS = 1_000
/**
 * Where each request is already a write of its own, another one before it would halve what the store
 * can take. These limits decide by what the instance knows, and learn of the others afterwards.
 */
const TOLD_AFTERWARDS: ReadonlySet<LimitName> = new Set([
  'ingest.spark',
  'ingest.standard',
  'ingest.long',
  'ping',
])
const TELL_EVERY_MS = 100
/** The others are told of who uses more than this part of a burst; most never do. */
const TELL_FROM = 0.2
/** So many keys are told of at a time; the others wait for the next. */
const TELL_KEYS = 200
/** Beyond these it is forgotten what was owed: each instance has counted it for itself. */
const OWED_MOST = 10_000
const PURGE_ROWS = 1_000

export type SharedLimits = { openBucket: OpenBucket; close(): Promise<void> }

export type SharedLimitsReport = {
  /** The store does not answer; told once, until it does again. */
  onAway(reason: string): void
  onBack(): void
}

/** @param secret names who is counted; their addresses and ids are in no row. */
export function openSharedLimits(
  url: string,
  secret: Uint8Array,
  report: SharedLimitsReport,
): SharedLimits {
  const store = openStore(url, report)
  const closing: (() => void)[] = []

  function postgres(name: LimitName, rate: Rate, insurance?: RateLimiterMemory) {
    return new RateLimiterPostgres({
      storeClient: store,
      storeType: 'client',
      tableName: TABLE,
      tableCreated: true,
      clearExpiredByTimeout: false,
      keyPrefix: name,
      points: rate.burst,
      duration: windowSeconds(rate),
      // Who has used up a window costs nobody anything until the next.
      inMemoryBlockOnConsumed: rate.burst,
      ...(insurance ? { insuranceLimiter: insurance } : {}),
    })
  }

  const hashed = (name: LimitName, key: string): string =>
    keyedHash(secret, name, key).subarray(0, 16).toString('base64url')

  function openExact(name: LimitName, rate: Rate): Bucket {
    const limiter = postgres(name, rate, memory(name, rate))
    return (key) => taken(limiter.consume(hashed(name, key)))
  }

  function openAfterwards(name: LimitName, rate: Rate): Bucket {
    const local = memory(name, rate)
    const shared = postgres(name, rate)
    const from = Math.max(1, Math.ceil(rate.burst * TELL_FROM))
    /** What each key has used that the others were not told of yet. */
    const owed = new Map<string, number>()
    let timer: NodeJS.Timeout | null = null
    closing.push(() => timer && clearTimeout(timer))

    async function tell(key: string, used: number): Promise<void> {
      const { consumedPoints, msBeforeNext } = await shared.penalty(hashed(name, key), used)
      // From here on the count is that of all instances.
      await local.set(key, consumedPoints + (owed.get(key) ?? 0), msBeforeNext / 1000)
    }

    async function tellSome(): Promise<void> {
      const some = [...owed].slice(0, TELL_KEYS)
      for (const [key] of some) owed.delete(key)
      // What could not be told is forgotten: it was counted here.
      await Promise.allSettled(some.map(([key, used]) => tell(key, used)))
      timer = null
      if (owed.size > 0) tellSoon()
    }

    function tellSoon(): void {
      timer ??= setTimeout(() => void tellSome(), TELL_EVERY_MS).unref()
    }

    return async (key) => {
      const answer = await taken(local.consume(key))
      const used = rate.burst - answer.remainingPoints
      if (answer.isRefused || used < from) return answer
      if (owed.size >= OWED_MOST) owed.clear()
      owed.set(key, (owed.get(key) ?? (used === from ? from - 1 : 0)) + 1)
      tellSoon()
      return answer
    }
  }

  return {
    openBucket: (name, rate) =>
      TOLD_AFTERWARDS.has(name) ? openAfterwards(name, rate) : openExact(name, rate),
    async close() {
      for (const close of closing) close()
      await store.close()
    },
  }
}

/** Forgets who was counted in windows that are over. */
export async function purgeLimits(db: Db, now: number): Promise<void> {
  for (;;) {
    const [gone] = await db.write([
      {
        text: `delete from rate_limit where key in (
            select key from rate_limit where expire < $1 limit $2) returning key`,
        values: [now, PURGE_ROWS],
      },
    ])
    if ((gone?.length ?? 0) < PURGE_ROWS) return
  }
}

const memory = (name: LimitName, rate: Rate): RateLimiterMemory =>
  new RateLimiterMemory({ keyPrefix: name, points: rate.burst, duration: windowSeconds(rate) })

type Query = { name?: string; text: string; values?: unknown[] }

/** The few connections of the limits. It refuses at once while the store is away or busy. */
function openStore(url: string, { onAway, onBack }: SharedLimitsReport) {
  const pool = new Pool({
    connectionString: url,
    application_name: 'mayfly limits',
    max: CONNECTIONS,
    connectionTimeoutMillis: ANSWER_MS,
    query_timeout: ANSWER_MS,
    keepAlive: true,
    // A count is worth no flush to disk.
    options: '-c synchronous_commit=off',
    types: { getTypeParser: (oid, format) => parserOf(oid, format) },
  })
  let restUntil = 0
  let isAway = false
  pool.on('error', () => undefined)

  return {
    async query(query: Query) {
      if (performance.now() < restUntil) throw new Error('the limits rest')
      if (pool.waitingCount >= WAITING_MOST) throw new Error('the limits are busy')
      try {
        const values = query.values?.map(whole)
        const result = await pool.query({ ...query, ...(values ? { values } : {}) })
        if (isAway) {
          isAway = false
          onBack()
        }
        return result
      } catch (error) {
        restUntil = performance.now() + REST_MS
        if (!isAway) {
          isAway = true
          onAway(messageOf(error))
        }
        throw error
      }
    },
    close: () => pool.end(),
  }
}

/** The library counts milliseconds of windows that need not be whole ones. */
const whole = (value: unknown): unknown => (typeof value === 'number' ? Math.round(value) : value)

const INT8 = types.builtins.INT8

function parserOf(oid: number, format?: 'text' | 'binary') {
  return oid === INT8 ? Number : types.getTypeParser(oid, format as 'text')
}
