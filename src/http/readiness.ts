/**
 * Whether this instance should be given requests: its store answers, and its node takes money.
 * Asked by load balancers every moment, so what it costs is bounded whoever asks.
 */
import { Type } from 'typebox'
import type { Db } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import type { App } from './app.ts'
import { ERRORS, type Phrase } from './errors.ts'

/** The store is asked at most this often; answers in between repeat the last one. */
const ASK_EVERY_MS = 1_000
/** A store that takes longer than this serves nobody. */
const STORE_WAIT_MS = 1_000
/** A balancer asks again by its own clock; this is for everybody else. */
const RETRY_SECONDS = 5

export type Readiness = {
  db: Pick<Db, 'read'>
  clock: Clock
  /** Asked of what is known already: the node itself is not called. */
  isNodeReady: () => boolean
  isStopping: () => boolean
}

const NOT_READY = 'not ready' satisfies Phrase
const Part = Type.Enum(['up', 'down'])

/** Mounts `GET /ready`. It is in no limit and in no log. */
export function mountReadiness(app: App, { db, clock, isNodeReady, isStopping }: Readiness): void {
  const isStoreUp = createStoreProbe(db, clock)
  app.route({
    method: ['GET', 'HEAD'],
    url: '/ready',
    config: { isUnlogged: true },
    schema: {
      tags: ['system'],
      summary: 'Readiness: the store answers and the node takes money',
      response: {
        200: Type.Object(
          { status: Type.Literal('ready') },
          { description: 'The store answers, and the node takes money' },
        ),
        503: Type.Object(
          { error: Type.String(), store: Part, node: Part, stopping: Type.Boolean() },
          { 'x-response-description': NOT_READY },
        ),
      },
    },
    async handler(_request, reply) {
      const store = await isStoreUp()
      const node = isNodeReady()
      const stopping = isStopping()
      if (store && node && !stopping) return { status: 'ready' as const }
      return reply
        .code(ERRORS[NOT_READY].status)
        .header('retry-after', String(RETRY_SECONDS))
        .send({
          error: NOT_READY,
          store: store ? ('up' as const) : ('down' as const),
          node: node ? ('up' as const) : ('down' as const),
          stopping,
        })
    },
  })
}

/** One read at a time, however many ask; a read that hangs is not joined by another. */
function createStoreProbe(db: Readiness['db'], clock: Clock): () => Promise<boolean> {
  let isReading = false
  let askedAt = Number.NEGATIVE_INFINITY
  let last: Promise<boolean> = Promise.resolve(false)

  async function read(): Promise<boolean> {
    isReading = true
    try {
      await db.read('select 1 as one')
      return true
    } catch {
      return false
    } finally {
      isReading = false
    }
  }

  return () => {
    const now = clock.now()
    const isFresh = now >= askedAt && now - askedAt < ASK_EVERY_MS
    if (isFresh) return last
    askedAt = now
    last = isReading ? Promise.resolve(false) : within(read(), STORE_WAIT_MS)
    return last
  }
}

async function within(work: Promise<boolean>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
