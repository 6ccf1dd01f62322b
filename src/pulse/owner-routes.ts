/** The owner's routes of a monitor: read, follow, change, destroy. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Alerts } from '../alerts/alerts.ts'
import { mountAlerts } from '../http/alerts/routes.ts'
import type { App } from '../http/app.ts'
import { inScope, parseAsBytes, rawBody } from '../http/body.ts'
import { sendNoContent } from '../http/discarded-body.ts'
import { invalid, problem } from '../http/errors.ts'
import type { Limits } from '../http/limits.ts'
import { createOwner, OWNER_ERRORS } from '../http/owner.ts'
import { STREAM } from '../http/response-headers.ts'
import { answer, errors, NoContent } from '../http/schemas.ts'
import type { EventStream, EventStreams } from '../http/streams.ts'
import { mountTokens } from '../http/token-routes.ts'
import { Type } from '../http/type.ts'
import type { Clock } from '../lib/clock.ts'
import type { SwitchOwner } from '../switches/owner.ts'
import { testAlert } from './alerts.ts'
import { awaitedStatus, followMonitor } from './following.ts'
import { type HistoryParts, mountHistory } from './history-routes.ts'
import { mountSchedule } from './schedule-routes.ts'
import { GRACE_SECONDS, PulseSettings, PulseStatus, publicId, StatusQuery } from './schema.ts'
import type { PulseService } from './service.ts'
import { parseSettings } from './settings.ts'
import { existingMonitor, type MonitorRow } from './store.ts'
import { mountSwitch } from './switch-routes.ts'

/** Fits the longest name and description with every character escaped. */
const MAX_SETTINGS_BYTES = 16 * 1024

type Owned = { Params: { publicId: string } }
type Awaited = Owned & { Querystring: StatusQuery }

const security = [{ bearer: [] }]
const monitorParams = Type.Object({ publicId })

export function mountOwner(
  app: App,
  deps: {
    service: PulseService
    alerts: Alerts
    limits: Limits
    streams: EventStreams
    clock: Clock
    switches: SwitchOwner
  } & HistoryParts,
): void {
  const { service, limits, streams } = deps
  const owner = createOwner<MonitorRow>(app, {
    ...{ limits, streams },
    kind: 'pulse_owner',
    find: service.owned,
    used: service.used,
    listen: service.listen,
  })
  const onRequest = owner.required
  const handlers = createHandlers(deps)
  const answerStatus = owner.answers<Awaited>(handlers.status)

  async function changeable(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    await owner.required(request, reply)
    if (service.hasExpired(owner.of(request))) throw problem('not found')
  }

  mountHistory(app, { ...deps, owner })
  mountTokens(app, owner, {
    ...{ product: 'pulse', noun: 'Monitor', publicId, kinds: ['owner', 'ping'], changeable },
    rotate: service.rotateToken,
  })
  mountSchedule(app, { owner, changeable, service, now: deps.clock.now })
  mountAlerts(
    app,
    { ...deps, owner },
    {
      ...{ product: 'pulse', path: '/api/pulse/:publicId/alerts', operations: 'Alerts' },
      ...{ whose: 'a monitor', publicId, changeable, test: testAlert },
      guard: ({ public_id: id }) => existingMonitor(id, deps.clock.now()),
    },
  )
  app.get<Awaited>(
    '/api/pulse/:publicId',
    { onRequest, config: { invalid: { query: 'invalid query' } }, schema: SCHEMAS.status },
    (request, reply) => {
      const { wait, since = null } = request.query
      if (!wait) return answerStatus(request, reply)
      return owner.waits(request, reply, {
        ms: wait * 1000,
        async work(monitor, poll) {
          const status = await awaitedStatus(monitor, { ...deps, since, poll })
          if (!status) throw problem('not found')
          return () => status
        },
      })
    },
  )
  app.get<Owned>(
    '/api/pulse/:publicId/stream',
    { onRequest, schema: SCHEMAS.stream },
    owner.streams(handlers.stream),
  )
  app.delete<Owned>(
    '/api/pulse/:publicId',
    { onRequest, schema: SCHEMAS.destroy },
    owner.answers(handlers.destroy),
  )
  mountSwitch(app, { owner, changeable, switches: deps.switches, now: deps.clock.now })
  inScope(app, (scope) => {
    parseAsBytes(scope, { contentTypes: ['application/json'], maxBytes: MAX_SETTINGS_BYTES })
    scope.patch<Owned>(
      '/api/pulse/:publicId',
      // The handler validates the body, because invalid JSON and invalid settings are different errors.
      { onRequest: changeable, schema: SCHEMAS.change, validatorCompiler: () => () => true },
      owner.answers(handlers.change),
    )
  })
}

function createHandlers({ service, clock }: { service: PulseService; clock: Clock }) {
  async function status(monitor: MonitorRow) {
    const status = await service.status(monitor)
    return () => status
  }

  function stream({ public_id: publicId }: MonitorRow) {
    return (stream: EventStream) => followMonitor({ service, publicId, stream, clock })
  }

  async function destroy(monitor: MonitorRow, request: FastifyRequest<Owned>, reply: FastifyReply) {
    if (!(await service.destroy(monitor))) throw problem('not found')
    return () => sendNoContent(request, reply)
  }

  async function change(monitor: MonitorRow, request: FastifyRequest<Owned>) {
    const changed = await service.change(monitor, parseSettings(rawBody(request)))
    if (changed.kind === 'grace too short') {
      const expected = `${changed.minimum} to ${GRACE_SECONDS.maximum}`
      throw invalid('invalid settings', { field: 'graceSeconds', expected })
    }
    if (changed.kind !== 'changed') throw problem(changed.kind)
    const status = await service.status(changed.monitor)
    return () => status
  }

  return { status, stream, destroy, change }
}

const SCHEMAS = {
  status: {
    tags: ['pulse'],
    operationId: 'getMonitor',
    summary: 'The state, counters and settings of a monitor',
    description:
      'With `wait` it answers as soon as the state is another one than `since` names, or after that many seconds.',
    security,
    params: monitorParams,
    querystring: StatusQuery,
    response: { 200: PulseStatus, ...errors('invalid query', ...OWNER_ERRORS) },
  },
  stream: {
    tags: ['pulse'],
    isLinked: true,
    operationId: 'streamMonitor',
    summary: 'Pings and changes of state as they happen (server-sent events)',
    description: 'The stream stays open: first the state as it is, then each ping and each change.',
    security,
    params: monitorParams,
    response: {
      200: answer(Type.String(), {
        type: 'text/event-stream',
        example: 'event: state\ndata: {"state":"operational"}\n\n',
        headers: STREAM,
        description:
          'Events named `state` and `ping`, each with a PulseStatus as its data; then one named `end` with why',
      }),
      ...errors(...OWNER_ERRORS),
    },
  },
  destroy: {
    tags: ['pulse'],
    operationId: 'destroyMonitor',
    summary: 'Destroy a monitor with both capabilities and what it shares',
    description:
      'All of it is gone at once, with its history and its shared status. This cannot be undone, and nothing is paid back.',
    security,
    params: monitorParams,
    response: { 204: NoContent, ...errors(...OWNER_ERRORS) },
  },
  change: {
    tags: ['pulse'],
    operationId: 'updateMonitor',
    summary: 'Change any of the settings of a monitor',
    description:
      'Members that are left out stay as they are. The deadline is computed anew from the last ping.',
    security,
    params: monitorParams,
    body: PulseSettings,
    response: {
      200: PulseStatus,
      ...errors(
        'invalid settings',
        'invalid request body',
        'unsupported media type',
        'request too large',
        'request timeout',
        ...OWNER_ERRORS,
      ),
    },
  },
}
