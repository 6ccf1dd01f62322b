/** The settings of a monitor and its schedule: for its owner, and those that it is bought with. */
import type { Static, TSchema } from 'typebox'
import type { App } from '../http/app.ts'
import { invalid, problem } from '../http/errors.ts'
import { OWNER_ERRORS, type Owner } from '../http/owner.ts'
import { errors, NoContent } from '../http/schemas.ts'
import { faultIn, validatorOf } from '../http/validation.ts'
import { hasInvisible } from '../lib/invisible.ts'
import type { Json } from '../lib/jcs.ts'
import { parseStrictJsonBytes } from '../lib/json.ts'
import { Type } from '../lib/json-schema.ts'
import { isTimetable } from './schedule.ts'
import {
  GRACE_SECONDS,
  MonitorTerms,
  type PulsePlan,
  PulseSchedule,
  PulseSettings,
  PulseStatus,
  publicId,
} from './schema.ts'
import type { PulseService } from './service.ts'
import type { MonitorRow } from './store.ts'

type Owned = { Params: { publicId: string } }

const about = {
  tags: ['pulse'],
  security: [{ bearer: [] }],
  params: Type.Object({ publicId }),
}
const BODY_ERRORS = [
  'invalid settings',
  'invalid request body',
  'unsupported media type',
  'request too large',
  'request timeout',
  ...OWNER_ERRORS,
] as const

export function mountSettings(
  app: App,
  {
    owner,
    changeable,
    service,
    now,
  }: {
    owner: Owner<MonitorRow>
    /** The hook of routes that an expired monitor has no more. */
    changeable: Owner<MonitorRow>['required']
    service: PulseService
    now(): number
  },
): void {
  const config = { invalid: { body: 'invalid settings' } } as const
  app.patch<Owned>(
    '/api/pulse/:publicId',
    {
      onRequest: changeable,
      config,
      schema: {
        ...about,
        operationId: 'updateMonitor',
        summary: 'Change any of the settings of a monitor',
        description:
          'Members that are left out stay as they are. A new interval or grace begins to count now.',
        body: PulseSettings,
        response: { 200: PulseStatus, ...errors(...BODY_ERRORS) },
      },
    },
    owner.answers(async (monitor, request) => {
      const wanted = readAs(PulseSettings, request.body)
      requireGrace(wanted.graceSeconds, monitor.minimum_grace_seconds)
      const changed = await service.change(monitor, wanted)
      if (!changed) throw problem('not found')
      const status = await service.status(changed)
      return () => status
    }),
  )
  app.put<Owned>(
    '/api/pulse/:publicId/schedule',
    {
      onRequest: changeable,
      config,
      schema: {
        ...about,
        isLinked: true,
        operationId: 'setSchedule',
        summary: 'Expect pings at cron times in a time zone; the interval is kept and not used',
        description: 'A ping is then expected at each of these times, and is late after the grace.',
        body: PulseSchedule,
        response: { 200: PulseSchedule, ...errors(...BODY_ERRORS) },
      },
    },
    owner.answers(async (monitor, request) => {
      const wanted = readAs(PulseSchedule, request.body)
      checkTimes(wanted, now())
      requireGrace(wanted.graceSeconds, monitor.minimum_grace_seconds)
      if (!(await service.setSchedule(monitor, wanted))) throw problem('not found')
      return () => wanted
    }),
  )
  app.delete<Owned>(
    '/api/pulse/:publicId/schedule',
    {
      onRequest: changeable,
      schema: {
        ...about,
        isLinked: true,
        operationId: 'deleteSchedule',
        summary: 'Return to the interval',
        description:
          'A ping is then expected at each interval after the last one, as before the schedule.',
        response: { 204: NoContent, ...errors(...OWNER_ERRORS) },
      },
    },
    owner.answers(async (monitor, _request, reply) => {
      if (!(await service.setSchedule(monitor, null))) throw problem('not found')
      return () => reply.code(204).send()
    }),
  )
}

/** A plan has a least grace. */
function requireGrace(graceSeconds: number | undefined, minimum: number): void {
  if (graceSeconds === undefined || graceSeconds >= minimum) return
  const expected = `${minimum} to ${GRACE_SECONDS.maximum}`
  throw invalid('invalid settings', { field: 'graceSeconds', expected })
}

/** @throws Problem `invalid settings` for what its schema refuses, and for texts that are none. */
export function readAs<Schema extends TSchema>(schema: Schema, value: unknown): Static<Schema> {
  if (!validatorOf(schema).Check(value) || !hasPlainTexts(value as PulseSettings)) {
    throw invalid('invalid settings', faultIn(schema, value))
  }
  return value
}

/** JSON can escape a lone surrogate, which is not a character. What looks like another monitor's name is none. */
const hasPlainTexts = ({ name = '', description = '' }: PulseSettings): boolean =>
  !hasInvisible(name) && description.isWellFormed()

/** @throws Problem `invalid settings` for times that never come. */
function checkTimes({ cron, timeZone }: PulseSchedule, now: number): void {
  if (!isTimetable({ cron: '* * * * *', timeZone }, now)) {
    throw invalid('invalid settings', {
      field: 'timeZone',
      expected: 'a name of the IANA time zone database, such as Europe/Berlin or UTC',
    })
  }
  if (!isTimetable({ cron, timeZone }, now)) {
    throw invalid('invalid settings', {
      field: 'cron',
      expected: 'five fields of cron that have a next run, such as 0 3 * * 1-5',
    })
  }
}

/**
 * The settings that a monitor is bought with, from `X-Pulse-Settings`. The least grace depends on the plan.
 * @throws Problem `invalid settings`
 */
export function monitorTerms(
  header: string | string[] | undefined,
  now: () => number,
): null | ((plan: Json) => Json) {
  if (header === undefined) return null
  const wanted = readAs(MonitorTerms, jsonOf(String(header)))
  return (plan) => checkedTerms(wanted, plan as PulsePlan, now())
}

/** Not an object if it is no JSON. */
function jsonOf(text: string): unknown {
  try {
    return parseStrictJsonBytes(Buffer.from(text, 'latin1'))
  } catch {
    return null
  }
}

function checkedTerms(wanted: MonitorTerms, { minimumGraceSeconds }: PulsePlan, now: number): Json {
  requireGrace(wanted.graceSeconds, minimumGraceSeconds)
  requireGrace(wanted.schedule?.graceSeconds, minimumGraceSeconds)
  if (wanted.schedule !== undefined) checkTimes(wanted.schedule, now)
  return wanted as Json
}
