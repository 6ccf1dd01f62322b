/** PULSE over HTTP: buying, pinging and the shared status. The owner's routes are in `owner-routes.ts`. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Alerts } from '../alerts/alerts.ts'
import type { App } from '../http/app.ts'
import { bearerToken } from '../http/bearer.ts'
import { clientScope } from '../http/client-address.ts'
import { exceedsDrainLimit, sendNoContent } from '../http/discarded-body.ts'
import { type Problem, problem } from '../http/errors.ts'
import type { EventStreams } from '../http/event-stream.ts'
import type { Limits } from '../http/limits.ts'
import { mountOneUrl } from '../http/one-url.ts'
import { mountPaidRoute, type Paying } from '../http/paid.ts'
import type { PaidRoute } from '../http/paid-route.ts'
import { MAX_PLAN_SELECTION_BYTES, parsePlanSelection } from '../http/plan-selection.ts'
import { CONTENT_POLICY } from '../http/response-headers.ts'
import { answer, errors, NoContent, PlanSelection } from '../http/schemas.ts'
import { Type } from '../http/type.ts'
import type { Clock } from '../lib/clock.ts'
import type { PlanId } from '../lib/product-names.ts'
import type { SwitchOwner } from '../switches/owner.ts'
import { badge } from './badge.ts'
import { PINGS, PUBLIC_STATUS } from './limits.ts'
import { mountOwner } from './owner-routes.ts'
import { PublicPulseStatus, PulseCapability, type PulsePlan, publicId } from './schema.ts'
import type { PulseService } from './service.ts'

/** How long caches may keep a badge. Pages that show it are rarely reloaded. */
const BADGE_SECONDS = 30
/** A badge runs no script, even if it is opened as a page. */
const BADGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

type Owned = { Params: { publicId: string } }
type Shared = { Params: { publicStatusId: string } }

const security = [{ bearer: [] }]
const monitorParams = Type.Object({ publicId })
const sharedParams = Type.Object({
  publicStatusId: Type.String({
    pattern: '^pulse_status_[A-Za-z0-9_-]{22,}$',
    description: 'What the owner shares; not the id of the monitor',
    examples: ['pulse_status_NfXb2mQx7RkT0cLz3H5jW9'],
  }),
})

export function mountPulse(
  app: App,
  deps: Paying & {
    service: PulseService
    alerts: Alerts
    plans: Record<PlanId, PulsePlan>
    streams: EventStreams
    clock: Clock
    switches: SwitchOwner
  },
): void {
  const { plans } = deps
  const route: PaidRoute = {
    product: 'pulse',
    path: '/api/payments/pulse',
    summary: 'Buy a heartbeat monitor',
    contentType: 'application/json',
    maxBodyBytes: MAX_PLAN_SELECTION_BYTES,
    bodySchema: PlanSelection,
    headerSchemas: {},
    resourceSchema: PulseCapability,
    parse: (body) => ({ planId: parsePlanSelection(body), terms: null }),
    plan: (planId) => (plans[planId].available ? plans[planId] : null),
    memo: (planId) => `Mayfly PULSE ${planId}`,
  }
  mountPaidRoute(app, deps, route)
  mountOneUrl(app, deps, route)
  mountPing(app, deps)
  mountOwner(app, deps)
  mountShared(app, deps)
}

function mountPing(app: App, { service, limits }: { service: PulseService; limits: Limits }): void {
  async function accept(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { publicId } = request.params as Owned['Params']
    const token = bearerToken(request.raw)
    const monitor = token === null ? null : await service.pinged(publicId, token)
    if (!monitor) return limits.refuse(notFound(), request, reply)
    await limits.take(PINGS, publicId, reply)
    // An alert is no sign of life of a job. Two monitors that tell each other would never be late.
    if (request.headers['mayfly-alert'] !== undefined) return
    if (!(await service.ping(monitor))) throw notFound()
  }

  app.route({
    method: 'POST',
    url: '/p/:publicId',
    config: { hasEmptyResponse: true },
    schema: {
      tags: ['pulse'],
      operationId: 'pingMonitor',
      summary: 'Record one heartbeat; a body is ignored and never stored',
      security,
      params: monitorParams,
      response: { 204: NoContent, ...errors('not found', 'rate limited', 'internal error') },
    },
    // Answered before Fastify parses the body: a ping may have any body and content type.
    onRequest: async (request, reply) => {
      try {
        await accept(request, reply)
      } catch (error) {
        if (exceedsDrainLimit(request.raw)) reply.header('connection', 'close')
        throw error
      }
      return sendNoContent(request, reply)
    },
    handler: () => {
      throw new Error('every ping is answered before')
    },
  })
}

function mountShared(
  app: App,
  {
    service,
    limits,
    clientAddress,
  }: Pick<Paying, 'limits' | 'clientAddress'> & { service: PulseService },
): void {
  async function found(request: FastifyRequest, reply: FastifyReply): Promise<PublicPulseStatus> {
    await limits.take(PUBLIC_STATUS, clientScope(clientAddress(request.raw)), reply)
    const { publicStatusId } = request.params as Shared['Params']
    const status = await service.publicStatus(publicStatusId)
    if (!status) throw notFound()
    return status
  }

  app.get(
    '/api/pulse/public/:publicStatusId',
    {
      schema: {
        tags: ['pulse'],
        operationId: 'getSharedStatus',
        summary: 'What the owner of a monitor shares',
        params: sharedParams,
        response: {
          200: PublicPulseStatus,
          ...errors('not found', 'rate limited', 'internal error'),
        },
      },
      // A malformed id is answered with `not found`.
      validatorCompiler: () => () => true,
    },
    found,
  )

  app.get(
    '/api/pulse/public/:publicStatusId/badge.svg',
    {
      schema: {
        tags: ['pulse'],
        isLinked: true,
        operationId: 'getBadge',
        summary: 'The name and state of a shared monitor, as an SVG badge',
        params: sharedParams,
        response: {
          200: answer(Type.String(), {
            type: 'image/svg+xml',
            description: 'An SVG document',
            headers: CONTENT_POLICY,
          }),
          ...errors('not found', 'rate limited', 'internal error'),
        },
      },
      validatorCompiler: () => () => true,
    },
    async (request, reply) => {
      const { name, state } = await found(request, reply)
      return reply
        .type('image/svg+xml; charset=utf-8')
        .header('cache-control', `public, max-age=${BADGE_SECONDS}`)
        .header('content-security-policy', BADGE_POLICY)
        .serializer((document: string) => document)
        .send(badge(name, state))
    },
  )
}

const notFound = (): Problem => problem('not found')
