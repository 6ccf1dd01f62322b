/** What a job sends: pings, and the signals of its runs. Their bodies are ignored and never stored. */

import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import type { App } from '../http/app.ts'
import { bearerToken } from '../http/credentials.ts'
import { invalid, type Problem, problem } from '../http/errors.ts'
import type { Limit, Limits } from '../http/limits.ts'
import { errors, NoContent } from '../http/schemas.ts'
import { only, Type } from '../lib/json-schema.ts'
import { PINGS, SIGNALS } from './limits.ts'
import { publicId } from './schema.ts'
import type { PulseService } from './service.ts'
import type { Signal } from './transition.ts'

type Params = { publicId: string; signal?: string }
/** The signal that a request sends. Null: there is no such path. */
type SignalOf = (request: FastifyRequest) => Signal | null

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const EXIT_CODE = /^(?:0|[1-9]\d{0,2})$/
const MAX_EXIT_CODE = 255
/** Every alert of this service has it. */
const ALERT_HEADER = 'mayfly-alert'

const security = [{ bearer: [] }]
const monitorParams = { publicId }
const querystring = only({
  rid: Type.Optional(
    Type.String({
      format: 'uuid',
      description: 'Names the run, where runs of a job overlap',
      examples: ['7f8c6f3e-6a0f-4d5c-9a53-0b8f3c1d2e4f'],
    }),
  ),
})

export function mountPings(
  app: App,
  { service, limits }: { service: PulseService; limits: Limits },
): void {
  async function accept(
    request: FastifyRequest,
    reply: FastifyReply,
    { limit, signalOf }: { limit: Limit; signalOf: SignalOf },
  ): Promise<void> {
    const token = bearerToken(request.raw)
    const { publicId } = request.params as Params
    const monitor = token === null ? null : await service.pinged(publicId, token)
    if (!monitor) return limits.refuse(notFound(), request, reply)
    const signal = signalOf(request)
    if (signal === null) throw notFound()
    await limits.take(limit, publicId, reply)
    // An alert is no sign of life of a job. Two monitors that tell each other would never be late.
    if (request.headers[ALERT_HEADER] !== undefined) return
    if (!(await service.signal(monitor, signal))) throw notFound()
  }

  /** Answered before Fastify parses the body, which may be of any content type. */
  const answered = (
    limit: Limit,
    signalOf: SignalOf,
  ): Pick<RouteOptions, 'onRequest' | 'handler'> => ({
    onRequest: async (request, reply) => {
      await accept(request, reply, { limit, signalOf })
      return reply.code(204).send()
    },
    handler: () => {
      throw new Error('every ping is answered before')
    },
  })

  app.route({
    method: 'POST',
    url: '/p/:publicId',
    config: { hasEmptyResponse: true },
    schema: {
      tags: ['pulse'],
      operationId: 'pingMonitor',
      summary: 'Record one heartbeat; a body is ignored and never stored',
      description:
        'Call it when the job has run. It takes one of the heartbeats of the plan, and the monitor is operational until the next one is overdue.',
      security,
      params: Type.Object(monitorParams),
      response: { 204: NoContent, ...errors('not found', 'rate limited', 'internal error') },
    },
    ...answered(PINGS, (request) => ({ kind: 'ping', rid: ridOf(request) ?? null })),
  })

  app.route({
    method: 'POST',
    url: '/p/:publicId/:signal',
    config: { hasEmptyResponse: true },
    schema: {
      tags: ['pulse'],
      isInWholeOnly: true,
      operationId: 'reportRun',
      summary: 'Report that a run begins, or how it ended; any code but 0 is a failure',
      description:
        'For a line such as `curl …/p/{publicId}/$?` after the command. An end is a heartbeat, and after a failure the monitor is late until a run succeeds. A start is none: it gives its end a duration.',
      security,
      params: Type.Object({
        ...monitorParams,
        signal: Type.String({
          description: '`start`, `fail`, or the exit code of the run, up to 255',
          examples: ['0'],
        }),
      }),
      querystring,
      response: {
        204: NoContent,
        ...errors('invalid query', 'not found', 'rate limited', 'internal error'),
      },
    },
    ...answered(SIGNALS, (request) => {
      const { signal = '' } = request.params as Params
      const kind = kindOf(signal)
      if (kind === null) return null
      const rid = ridOf(request)
      const others = Object.keys(request.query as object).filter((name) => name !== 'rid')
      if (rid === undefined || others.length > 0) {
        throw invalid('invalid query', { field: 'rid', expected: 'one UUID, beside nothing else' })
      }
      return { ...kind, rid }
    }),
  })
}

function kindOf(
  signal: string,
): { kind: 'start' } | { kind: 'end'; exitCode: number | null } | null {
  if (signal === 'start') return { kind: 'start' }
  if (signal === 'fail') return { kind: 'end', exitCode: null }
  const exitCode = EXIT_CODE.test(signal) ? Number(signal) : MAX_EXIT_CODE + 1
  return exitCode > MAX_EXIT_CODE ? null : { kind: 'end', exitCode }
}

/** The name of the run, null without one, and undefined if it is no UUID. */
function ridOf(request: FastifyRequest): string | null | undefined {
  const { rid } = request.query as { rid?: unknown }
  if (rid === undefined) return null
  return typeof rid === 'string' && UUID.test(rid) ? rid.toLowerCase() : undefined
}

const notFound = (): Problem => problem('not found')
