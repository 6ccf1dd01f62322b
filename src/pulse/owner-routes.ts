/** The owner's routes of a monitor: read, follow, destroy, its settings, tokens, alerts and switch. */

import type { Alerts } from '../alerts/alerts.ts'
import type { ServiceClock } from '../db/clock.ts'
import type { Db } from '../db/db.ts'
import { mountAlerts } from '../http/alerts/routes.ts'
import type { App } from '../http/app.ts'
import { ignoreBody } from '../http/body.ts'
import { invalid, problem } from '../http/errors.ts'
import type { Limits } from '../http/limits.ts'
import { createOwner, type Owner } from '../http/owner.ts'
import { NoContent, streamed } from '../http/schemas.ts'
import type { EventStreams } from '../http/streams.ts'
import { mountTokens } from '../http/token-routes.ts'
import type { SwitchOwner } from '../switches/switches.ts'
import { testAlert } from './alerts.ts'
import { awaitedStatus, followMonitor } from './following.ts'
import { historyPage, placeOf } from './history.ts'
import { DEFAULT_ENTRIES, PulseHistory, PulseHistoryQuery } from './history-schema.ts'
import {
  PulseSchedule,
  PulseSettings,
  PulseStatus,
  publicId,
  RevealSwitch,
  StatusQuery,
} from './schema.ts'
import type { PulseService } from './service.ts'
import { checkTerms, readAs } from './settings.ts'
import { existingMonitor, type MonitorRow } from './store.ts'

type Awaited = { Querystring: StatusQuery }
type Paged = { Querystring: PulseHistoryQuery }

export type OwnerDeps = {
  db: Pick<Db, 'read'>
  service: PulseService
  alerts: Alerts
  limits: Limits
  streams: EventStreams
  clock: Pick<ServiceClock, 'now' | 'windows'>
  switches: SwitchOwner
}

const MONITOR = '/api/pulse/:publicId'

export function mountOwner(app: App, deps: OwnerDeps): void {
  const { service, limits, streams, clock } = deps
  const owner = createOwner<MonitorRow>(app, {
    limits,
    streams,
    product: 'pulse',
    publicId,
    kind: 'pulse_owner',
    find: service.owned,
    hasEnded: service.hasExpired,
    used: service.used,
    listen: service.listen,
  })

  mountReading(owner, deps)
  owner.mount(
    ['DELETE', MONITOR],
    {
      operationId: 'destroyMonitor',
      summary: 'Destroy a monitor with both capabilities and what it shares',
      description:
        'All of it is gone at once, with its history and its shared status. This cannot be undone, and nothing is paid back.',
      response: { 204: NoContent },
    },
    owner.removes(service.destroy),
  )
  mountTokens(owner, { noun: 'Monitor', kinds: ['owner', 'ping'], rotate: service.rotateToken })
  mountSettings(owner, deps)
  mountAlerts(
    { ...deps, owner },
    {
      path: `${MONITOR}/alerts`,
      operations: 'Alerts',
      whose: 'a monitor',
      test: testAlert,
      guard: ({ public_id: id }) => existingMonitor(id, clock.now()),
    },
  )
  mountSwitch(owner, deps)
}

function mountReading(owner: Owner<MonitorRow>, deps: OwnerDeps): void {
  const { service, clock } = deps
  const answerStatus = owner.answers<Awaited>(async (monitor) => {
    const status = await service.status(monitor)
    return () => status
  })
  owner.mount<Awaited>(
    ['GET', MONITOR],
    {
      operationId: 'getMonitor',
      summary: 'The state, counters and settings of a monitor',
      description:
        'With `wait` it answers as soon as the state is another one than `since` names, or after that many seconds.',
      querystring: StatusQuery,
      response: { 200: PulseStatus },
      errors: ['invalid query'],
    },
    (request, reply) => {
      const { wait, since = null } = request.query
      if (!wait) return answerStatus(request, reply)
      return owner.waits(request, reply, {
        ms: wait * 1000,
        async work(monitor, poll) {
          const status = await awaitedStatus(monitor, { service, clock, since, poll })
          if (!status) throw problem('not found')
          return () => status
        },
      })
    },
  )
  owner.mount(
    ['GET', `${MONITOR}/stream`],
    {
      isInWholeOnly: true,
      operationId: 'streamMonitor',
      summary: 'Pings and changes of state as they happen (server-sent events)',
      description:
        'The stream stays open: first the state as it is, then each ping and each change.',
      response: {
        200: streamed(
          'Events named `state` and `ping`, each with a PulseStatus as its data; then one named `end` with why',
          { id: '91', event: 'state', data: '{"state":"operational"}' },
        ),
      },
    },
    owner.streams((found) => (stream) => followMonitor({ service, found, stream, clock })),
  )
  owner.mount<Paged>(
    ['GET', `${MONITOR}/history`],
    {
      isInWholeOnly: true,
      operationId: 'getHistory',
      summary: 'Pings, runs, late spells and blind windows of a whole life, and the uptime',
      description: 'Newest first, in pages. It stays readable until the monitor is gone.',
      querystring: PulseHistoryQuery,
      response: { 200: PulseHistory },
      errors: ['invalid query'],
    },
    owner.answers<Paged>(async (monitor, { query }) => {
      const { limit = DEFAULT_ENTRIES, cursor, type = null } = query
      const place = cursor === undefined ? null : placeOf(cursor)
      if (cursor !== undefined && place === null) {
        throw invalid('invalid query', {
          field: 'cursor',
          expected: 'the nextCursor of a page of this history',
        })
      }
      const page = await historyPage(deps, monitor, { limit, place, type })
      if (page === null) throw problem('not found')
      return () => page
    }),
  )
}

function mountSettings(owner: Owner<MonitorRow>, { service, clock }: OwnerDeps): void {
  const boundsOf = ({ minimum_grace_seconds: minimumGraceSeconds }: MonitorRow) => ({
    minimumGraceSeconds,
    now: clock.now(),
  })
  const route = {
    onRequest: owner.changeable,
    config: { invalid: { body: 'invalid settings' } },
  } as const
  owner.mount(
    ['PATCH', MONITOR],
    {
      operationId: 'updateMonitor',
      summary: 'Change any of the settings of a monitor',
      description:
        'Members that are left out stay as they are. A new interval or grace begins to count now.',
      body: PulseSettings,
      response: { 200: PulseStatus },
      errors: ['invalid settings'],
      route,
    },
    owner.answers(async (monitor, request) => {
      const wanted = readAs(PulseSettings, request.body)
      checkTerms(wanted, boundsOf(monitor))
      const changed = await service.change(monitor, wanted)
      if (!changed) throw problem('not found')
      const status = await service.status(changed)
      return () => status
    }),
  )
  owner.mount(
    ['PUT', `${MONITOR}/schedule`],
    {
      isInWholeOnly: true,
      operationId: 'setSchedule',
      summary: 'Expect pings at cron times in a time zone; the interval is kept and not used',
      description: 'A ping is then expected at each of these times, and is late after the grace.',
      body: PulseSchedule,
      response: { 200: PulseSchedule },
      errors: ['invalid settings'],
      route,
    },
    owner.answers(async (monitor, request) => {
      const wanted = readAs(PulseSchedule, request.body)
      checkTerms({ schedule: wanted }, boundsOf(monitor))
      if (!(await service.setSchedule(monitor, wanted))) throw problem('not found')
      return () => wanted
    }),
  )
  owner.mount(
    ['DELETE', `${MONITOR}/schedule`],
    {
      isInWholeOnly: true,
      operationId: 'deleteSchedule',
      summary: 'Return to the interval',
      description:
        'A ping is then expected at each interval after the last one, as before the schedule.',
      response: { 204: NoContent },
      route: { onRequest: owner.changeable },
    },
    owner.removes((monitor) => service.setSchedule(monitor, null)),
  )
}

/** The id that binds secrets to the monitor's silence. */
function mountSwitch(owner: Owner<MonitorRow>, { switches, clock }: OwnerDeps): void {
  owner.mount(
    ['POST', `${MONITOR}/switch`],
    {
      isInWholeOnly: true,
      operationId: 'makeSwitch',
      summary: 'The switch of a monitor, which is made with the first call',
      description:
        'A whisper that is bought with this id can be read only after the monitor fell silent. Later calls return the same switch.',
      response: { 200: RevealSwitch },
      route: { onRequest: [ignoreBody, owner.changeable] },
    },
    owner.answers(async ({ public_id: monitorId }) => {
      // A monitor that is destroyed meanwhile must leave no switch behind.
      const switchId = await switches.make(monitorId, existingMonitor(monitorId, clock.now()))
      if (switchId === null) throw problem('not found')
      return () => ({ switchId })
    }),
  )
  owner.mount(
    ['DELETE', `${MONITOR}/switch`],
    {
      isInWholeOnly: true,
      operationId: 'retireSwitch',
      summary: 'Retire the switch: nothing more is bound to it, and what is bound stays bound',
      description: 'Whispers that were bound to it before still wait for the monitor.',
      response: { 204: NoContent },
      route: { onRequest: owner.changeable },
    },
    owner.removes(({ public_id: monitorId }) => switches.retire(monitorId)),
  )
}
