/** The owner's routes for alerts: set their destinations, test them, see what was sent. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Alerts } from '../alerts/alerts.ts'
import type { SetDestination, Told, Wanted } from '../alerts/destinations.ts'
import type { App } from '../http/app.ts'
import { sendNoContent } from '../http/discarded-body.ts'
import { problem } from '../http/errors.ts'
import type { Limits } from '../http/limits.ts'
import { OWNER_ERRORS, type Owner } from '../http/owner.ts'
import { parseAsBytes, rawBody } from '../http/raw-body.ts'
import { errors, NoContent } from '../http/schemas.ts'
import { Type } from '../http/type.ts'
import { rfc3339 } from '../lib/clock.ts'
import { AlertSettings, AlertsSet, AlertsStatus } from './alert-schema.ts'
import { parseDestinations } from './alert-settings.ts'
import { testAlert } from './alerts.ts'
import { ALERT_TESTS, ALERT_TESTS_PER_TARGET } from './limits.ts'
import { publicId } from './schema.ts'
import { existingMonitor, type MonitorRow } from './store.ts'

/** Fits three of the longest destinations with every character escaped. */
const MAX_BODY_BYTES = 48 * 1024
const PATH = '/api/pulse/:publicId/alerts'

type Owned = { Params: { publicId: string } }

export function mountAlerts(
  app: App,
  deps: {
    alerts: Alerts
    limits: Limits
    owner: Owner<MonitorRow>
    /** Like `owner.required`, but an ended monitor is not found. */
    changeable(request: FastifyRequest, reply: FastifyReply): Promise<void>
    now: () => number
  },
): void {
  const { alerts, limits, owner, changeable, now } = deps
  const { destinations } = alerts

  async function requireOn(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    await changeable(request, reply)
    if (!alerts.isOn) throw problem('alerts unavailable')
  }

  /** Tests go to strangers, so a monitor has few, and so has each address of a stranger. */
  async function takeTests(monitor: MonitorRow, wanted: Wanted[], reply: FastifyReply) {
    for (const one of wanted) {
      if (one.format !== 'inbox') {
        const target = one.url.host + one.url.pathname
        await limits.take(ALERT_TESTS_PER_TARGET, target, reply)
      }
      await limits.take(ALERT_TESTS, monitor.public_id, reply)
    }
  }

  app.get<Owned>(
    PATH,
    { onRequest: owner.required, schema: SCHEMAS.read },
    owner.answers(async ({ public_id: id }) => {
      const [list, told] = await Promise.all([destinations.list(id), destinations.told(id)])
      return () => ({ destinations: list, deliveries: told.map(deliveryOf) })
    }),
  )
  app.delete<Owned>(
    PATH,
    { onRequest: owner.required, schema: SCHEMAS.remove },
    owner.answers(async ({ public_id: id }, request, reply) => {
      await destinations.remove(id)
      return () => sendNoContent(request, reply)
    }),
  )
  app.post<Owned>(
    `${PATH}/test`,
    { onRequest: requireOn, schema: SCHEMAS.test },
    owner.answers(async (monitor, _request, reply) => {
      await takeTests(monitor, await destinations.untestedOf(monitor.public_id), reply)
      const set = await destinations.testAgain(monitor.public_id, testAlert(monitor))
      return () => ({ destinations: set.map(setOf) })
    }),
  )
  app.register(async (scope) => {
    parseAsBytes(scope, { contentTypes: ['application/json'], maxBytes: MAX_BODY_BYTES })
    scope.put<Owned>(
      PATH,
      // The handler validates the body, because its errors name the member that is wrong.
      { onRequest: requireOn, schema: SCHEMAS.set, validatorCompiler: () => () => true },
      owner.answers(async (monitor, request, reply) => {
        const { public_id: id } = monitor
        const wanted = await parseDestinations(rawBody(request as FastifyRequest), alerts)
        await takeTests(monitor, await destinations.untested(id, wanted), reply)
        const guard = existingMonitor(id, now())
        const set = await destinations.set(id, { wanted, guard, test: testAlert(monitor) })
        if (!set) throw problem('not found')
        return () => ({ destinations: set.map(setOf) })
      }),
    )
  })
}

const setOf = ({ id, format, host, state, secret, test }: SetDestination) => ({
  ...{ id, format, host, state, secret, test },
})

const deliveryOf = ({ alert, nextAt }: Told): AlertsStatus['deliveries'][number] => ({
  messageId: alert.message_id,
  destinationId: alert.destination_id,
  type: alert.type,
  happenedAt: rfc3339(alert.occurred_at),
  triedAt: alert.attempted_at === null ? null : rfc3339(alert.attempted_at),
  outcome: alert.outcome,
  attempts: alert.attempts,
  nextTryAt: nextAt === null ? null : rfc3339(nextAt),
})

const shared = {
  tags: ['pulse'],
  security: [{ bearer: [] }],
  params: Type.Object({ publicId }),
  isLinked: true,
}

const SCHEMAS = {
  read: {
    ...shared,
    operationId: 'getAlerts',
    summary: "Where a monitor's alerts go, and what was sent",
    response: { 200: AlertsStatus, ...errors(...OWNER_ERRORS) },
  },
  remove: {
    ...shared,
    operationId: 'deleteAlerts',
    summary: 'Forget all destinations and what waits for them',
    response: { 204: NoContent, ...errors(...OWNER_ERRORS) },
  },
  test: {
    ...shared,
    operationId: 'testAlerts',
    summary: 'Test the destinations that no test has reached',
    response: { 200: AlertsSet, ...errors('alerts unavailable', ...OWNER_ERRORS) },
  },
  set: {
    ...shared,
    operationId: 'setAlerts',
    summary: 'Set at most three destinations, and test those that are new',
    body: AlertSettings,
    response: {
      200: AlertsSet,
      ...errors(
        'invalid destinations',
        'invalid request body',
        'unsupported media type',
        'request too large',
        'request timeout',
        'alerts unavailable',
        ...OWNER_ERRORS,
      ),
    },
  },
}
