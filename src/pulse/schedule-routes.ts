/** The schedule of a monitor, for its owner: cron times in a time zone instead of an interval. */
import type { FastifyRequest } from 'fastify'
import { Compile } from 'typebox/schema'
import type { App } from '../http/app.ts'
import { inScope, parseAsBytes, rawBody } from '../http/body.ts'
import { sendNoContent } from '../http/discarded-body.ts'
import { invalid, problem } from '../http/errors.ts'
import { OWNER_ERRORS, type Owner } from '../http/owner.ts'
import { errors, NoContent } from '../http/schemas.ts'
import { Type } from '../http/type.ts'
import { createFaultFinder } from '../http/validation.ts'
import { parseStrictJsonBytes } from '../lib/json.ts'
import { isTimetable } from './schedule.ts'
import { GRACE_SECONDS, PulseSchedule, publicId } from './schema.ts'
import type { PulseService } from './service.ts'
import type { MonitorRow } from './store.ts'

type Owned = { Params: { publicId: string } }

/** Fits the longest schedule with every character escaped. */
const MAX_SCHEDULE_BYTES = 4 * 1024

const schedule = Compile(PulseSchedule)
const faultIn = createFaultFinder(PulseSchedule)

const about = {
  tags: ['pulse'],
  isLinked: true,
  security: [{ bearer: [] }],
  params: Type.Object({ publicId }),
}

export function mountSchedule(
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
  inScope(app, (scope) => {
    parseAsBytes(scope, { contentTypes: ['application/json'], maxBytes: MAX_SCHEDULE_BYTES })
    scope.put<Owned>(
      '/api/pulse/:publicId/schedule',
      {
        onRequest: changeable,
        // The handler validates the body, because invalid JSON and an invalid schedule are different errors.
        validatorCompiler: () => () => true,
        schema: {
          ...about,
          operationId: 'setSchedule',
          summary: 'Expect pings at cron times in a time zone; the interval is kept and not used',
          description:
            'A ping is then expected at each of these times, and is late after the grace.',
          body: PulseSchedule,
          response: {
            200: PulseSchedule,
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
      },
      owner.answers(async (monitor, request) => {
        const wanted = parseSchedule(rawBody(request as FastifyRequest), monitor, now())
        if (!(await service.setSchedule(monitor, wanted))) throw problem('not found')
        return () => wanted
      }),
    )
  })
  app.delete<Owned>(
    '/api/pulse/:publicId/schedule',
    {
      onRequest: changeable,
      schema: {
        ...about,
        operationId: 'deleteSchedule',
        summary: 'Return to the interval',
        description:
          'A ping is then expected at each interval after the last one, as before the schedule.',
        response: { 204: NoContent, ...errors(...OWNER_ERRORS) },
      },
    },
    owner.answers(async (monitor, request, reply) => {
      if (!(await service.setSchedule(monitor, null))) throw problem('not found')
      return () => sendNoContent(request as FastifyRequest, reply)
    }),
  )
}

/** @throws Problem `invalid request body` for invalid JSON, `invalid settings` for anything else. */
function parseSchedule(
  body: Buffer,
  { minimum_grace_seconds: minimum }: MonitorRow,
  now: number,
): PulseSchedule {
  const value = parseStrictJsonBytes(body)
  if (value === undefined) throw invalid('invalid request body', faultIn(value))
  if (!schedule.Check(value)) throw invalid('invalid settings', faultIn(value))
  const { cron, timeZone, graceSeconds } = value
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
  if (graceSeconds < minimum) {
    const expected = `${minimum} to ${GRACE_SECONDS.maximum}`
    throw invalid('invalid settings', { field: 'graceSeconds', expected })
  }
  return value
}
