/**
 * Readiness: whether a load balancer should send requests to this instance. It is when the store answers and takes
 * writes, and the node takes payments. Load balancers ask often, so the cost is bounded.
 */
import { setImmediate } from 'node:timers/promises'
import type { ServiceClock } from '../../db/clock.ts'
import type { Db } from '../../db/db.ts'
import { unlessAborted } from '../../lib/abort.ts'
import type { Clock } from '../../lib/clock.ts'
import { named, Type } from '../../lib/json-schema.ts'
import { ERRORS, type Phrase } from '../../protocol/errors.ts'
import type { App } from '../app.ts'
import { RETRY_AFTER } from '../response-headers.ts'
import { answer } from '../schemas.ts'

/** The store is probed at most this often; requests in between get the last result. */
const PROBE_INTERVAL_MS = 1_000
/** A store that takes longer than this counts as down. */
const PROBE_TIMEOUT_MS = 1_000
/** For other clients: a load balancer has its own interval. */
const RETRY_SECONDS = 5

export type Readiness = {
  db: Pick<Db, 'read'>
  clock: Clock & Pick<ServiceClock, 'isBeating'>
  /** Returns the last known state, and does not call the node. */
  isNodeReady: () => boolean
  isStopping: () => boolean
}

const NOT_READY = 'not ready' satisfies Phrase
const Part = Type.Enum(['up', 'down'])

const Ready = named('Ready', 'The store answers, and the node takes money', {
  status: Type.Literal('ready'),
})

const NotReady = Type.Object(
  {
    error: Type.String({ description: 'Always the same phrase', examples: ['not ready'] }),
    store: Part,
    node: Part,
    stopping: Type.Boolean({ description: 'It is about to stop' }),
  },
  { 'x-schema': 'NotReady' },
)

/** Mounts `GET /ready`, which is neither rate limited nor logged. */
export function mountReadiness(app: App, { db, clock, isNodeReady, isStopping }: Readiness): void {
  const isStoreUp = createStoreProbe(db, clock)
  app.route({
    method: ['GET', 'HEAD'],
    url: '/ready',
    config: { isUnlogged: true },
    schema: {
      tags: ['system'],
      operationId: { GET: 'getReadiness', HEAD: 'headReadiness' },
      summary: 'Readiness: the store answers and the node takes money',
      description: 'For load balancers. 503 says what is missing.',
      response: {
        200: Ready,
        503: answer(NotReady, { description: NOT_READY, headers: RETRY_AFTER }),
      },
    },
    async handler(_request, reply) {
      const store = clock.isBeating() && (await isStoreUp())
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

function createStoreProbe(db: Readiness['db'], clock: Clock): () => Promise<boolean> {
  let probedAt = Number.NEGATIVE_INFINITY
  let last: Promise<boolean> = Promise.resolve(false)
  let reading: Promise<boolean> | null = null

  const read = (): Promise<boolean> =>
    db
      .read('select 1 as one')
      .then(
        () => true,
        () => false,
      )
      .finally(() => {
        reading = null
      })

  return () => {
    const now = clock.now()
    const isFresh = now >= probedAt && now - probedAt < PROBE_INTERVAL_MS
    if (isFresh) return last
    probedAt = now
    // While one hangs, no other is started.
    reading ??= read()
    const answer = reading
    // An answer that came while this process was held up is read after the timers.
    last = unlessAborted(AbortSignal.timeout(PROBE_TIMEOUT_MS), answer).catch(() =>
      Promise.race([answer, setImmediate(false)]),
    )
    return last
  }
}

// Whether the process is alive. It does not depend on the node; the catalogue and /ready report that.

const Health = named('Health', 'It runs', {
  service: Type.String({ examples: ['mayfly'] }),
  status: Type.Literal('ok'),
})

export function mountHealth(app: App): void {
  app.route({
    method: ['GET', 'HEAD'],
    url: '/health',
    schema: {
      tags: ['system'],
      operationId: { GET: 'getHealth', HEAD: 'headHealth' },
      summary: 'Liveness',
      description: 'The process runs. It says nothing of the store or of the node.',
      response: {
        200: Health,
      },
    },
    handler: async () => ({ service: 'mayfly', status: 'ok' as const }),
  })
}
