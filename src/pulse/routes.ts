/** PULSE over HTTP: buying and the shared status. `owner-routes.ts` has the owner's routes, `ping-routes.ts` the job's. */

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { App } from '../http/app.ts'
import { clientScope } from '../http/client-address.ts'
import { type Problem, problem } from '../http/errors.ts'
import { mountExtension } from '../http/paid/extension.ts'
import { mountOneUrl } from '../http/paid/one-url.ts'
import { mountPaidRoute, type Paying } from '../http/paid/paid.ts'
import { type PaidRoute, parsePlanSelection, soldByPlan } from '../http/paid/route.ts'
import { CONTENT_POLICY } from '../http/response-headers.ts'
import { answer, errors } from '../http/schemas.ts'
import { Type } from '../lib/json-schema.ts'
import type { PlanId } from '../lib/product-names.ts'
import { badge } from './badge.ts'
import { PUBLIC_STATUS } from './limits.ts'
import { mountOwner, type OwnerDeps } from './owner-routes.ts'
import { mountPings } from './ping-routes.ts'
import { PublicPulseStatus, PulseCapability, type PulsePlan, publicId } from './schema.ts'
import type { PulseService } from './service.ts'
import { monitorTerms } from './settings.ts'
import { isActive } from './state.ts'

/** How long caches may keep a badge. Pages that show it are rarely reloaded. */
const BADGE_SECONDS = 30
/** A badge runs no script, even if it is opened as a page. */
const BADGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

type Shared = { Params: { publicStatusId: string } }

const sharedParams = Type.Object({
  publicStatusId: Type.String({
    pattern: '^pulse_status_[A-Za-z0-9_-]{22,}$',
    description: 'What the owner shares; not the id of the monitor',
    examples: ['pulse_status_NfXb2mQx7RkT0cLz3H5jW9'],
  }),
})

const purchaseHeaders = {
  'x-pulse-settings': Type.Optional(
    Type.String({
      description:
        'The settings that the monitor begins with, as the JSON of PulseSettings with an optional `schedule`. ' +
        'Characters beyond ASCII are escaped, as \\u00e9.',
      examples: ['{"name":"backup","expectedIntervalSeconds":86400}'],
    }),
  ),
}

export function mountPulse(
  app: App,
  deps: Paying & OwnerDeps & { plans: Readonly<Record<PlanId, PulsePlan>> },
): void {
  const { plans, service, clock } = deps
  const about = { summary: 'Buy a heartbeat monitor', resourceSchema: PulseCapability }
  const bought = soldByPlan('pulse', about, plans)
  const route: PaidRoute = {
    ...bought,
    headerSchemas: purchaseHeaders,
    phrases: ['invalid settings'],
    parse: (body, { headers }) => ({
      planId: parsePlanSelection(body),
      terms: monitorTerms(headers['x-pulse-settings'], clock.now),
    }),
  }
  mountPaidRoute(app, deps, route)
  mountOneUrl(app, deps, route)
  mountExtension(app, deps, {
    bought,
    noun: 'a monitor',
    kind: 'pulse_owner',
    publicId,
    service,
    of: (monitor) => ({
      planId: monitor.plan_id,
      expiresAt: monitor.expires_at,
      isActive: isActive(monitor, clock.now()),
      limits: { heartbeatLimit: monitor.heartbeat_limit },
    }),
  })
  mountPings(app, deps)
  mountOwner(app, deps)
  mountShared(app, deps)
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
        description:
          'For anyone who has the id that the owner shares. It names neither the monitor nor its settings. 404 while sharing is off.',
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
        isInWholeOnly: true,
        operationId: 'getBadge',
        summary: 'The name and state of a shared monitor, as an SVG badge',
        description:
          'For a page or a README. It is the shared status as a picture; 404 while sharing is off.',
        params: sharedParams,
        response: {
          200: answer(Type.String(), {
            type: 'image/svg+xml',
            example: '<svg xmlns="http://www.w3.org/2000/svg"/>',
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
        .send(badge(name, state))
    },
  )
}

const notFound = (): Problem => problem('not found')
