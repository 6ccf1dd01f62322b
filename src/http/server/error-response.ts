/** Error responses: for thrown errors, and for requests that Node's parser refuses. */
import { randomUUID } from 'node:crypto'
import type { Duplex } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { StoreAway, StoreBusy } from '../../db/db.ts'
import { codeOf } from '../../lib/errors.ts'
import type { Fault, Phrase } from '../../protocol/errors.ts'
import { invalid, Problem, problem, serviceUnavailable } from '../errors.ts'
import { NO_JSON } from '../validation.ts'

/** Sends an error in the form that the client may see. Bugs of the service are logged here, once. */
export function sendError(
  error: unknown,
  { request, reply, log }: { request: FastifyRequest; reply: FastifyReply; log: Logger },
): void {
  const known = publicProblem(error, request)
  if (known) return void sendProblem(reply, known)
  const requestId = randomUUID()
  log.error({
    event: 'http.failed',
    requestId,
    method: request.method,
    route: request.routeOptions.url ?? 'none',
    err: error,
  })
  reply.header('x-request-id', requestId)
  const passes = error instanceof StoreAway || error instanceof StoreBusy
  sendProblem(reply, passes ? serviceUnavailable() : problem('internal error'))
}

/** The client's mistake, or null if the mistake is the service's. */
function publicProblem(error: unknown, request: FastifyRequest): Problem | null {
  if (error instanceof Problem) return error
  const phrases = request.routeOptions.config.invalid
  if (isValidationError(error)) {
    if (error.validationContext !== 'body') {
      return invalid('invalid query', error.fault ?? {})
    }
    if (request.body === undefined) return invalid(phrases?.json ?? 'invalid request body', NO_JSON)
    return invalid(phrases?.body ?? 'invalid request body', error.fault ?? {})
  }
  const code = codeOf(error)
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return problem('request too large')
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    const { requestBody, consumes = ['application/json'] } = request.routeOptions.schema ?? {}
    const types = requestBody ? Object.keys(requestBody.content) : consumes
    return invalid('unsupported media type', {
      field: 'Content-Type',
      expected: types.join(' or '),
    })
  }
  if (code.startsWith('FST_ERR_CTP_')) return problem(phrases?.json ?? 'invalid request body')
  // The client disconnected or was timed out, so nobody reads this response.
  if (code === 'ECONNRESET' || code === 'ABORT_ERR') return problem('request timeout')
  return null
}

export function sendProblem(
  reply: FastifyReply,
  { phrase, status, headers, fault }: Problem,
): FastifyReply {
  return reply
    .code(status)
    .headers({ 'cache-control': 'no-store', ...headers })
    .header('content-type', 'application/json; charset=utf-8')
    .send(JSON.stringify({ error: phrase, ...fault }))
}

const WELL_FORMED = 'an HTTP/1.1 request to this service, as RFC 9112 has it'

/**
 * Fastify never sees a request that Node's parser refuses, so this response is written by hand. It holds nothing of the
 * service, so any page may read it, whatever it asked for.
 */
export const answerClientError =
  (date: () => string) =>
  (error: NodeJS.ErrnoException, socket: Duplex): void => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    const { line, ...told } = clientErrorAnswer(error.code)
    const body = JSON.stringify(told)
    socket.end(
      `HTTP/1.1 ${line}\r\nDate: ${date()}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${body.length}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nAccess-Control-Allow-Origin: *\r\nConnection: close\r\n\r\n${body}`,
      () => {
        // Later bytes must not complete a request that timed out, and must not fill a tunnel. After a parser
        // error the parser keeps refusing them, so the sender has time to read the answer.
        if (!error.code?.startsWith('HPE_')) socket.destroy()
      },
    )
  }

function clientErrorAnswer(code: string | undefined): {
  error: Phrase
  expected?: string
  line: string
} {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return { error: 'request too large', line: '431 Request Header Fields Too Large' }
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { error: 'request timeout', line: '408 Request Timeout' }
    default:
      return { error: 'invalid request body', expected: WELL_FORMED, line: '400 Bad Request' }
  }
}

function isValidationError(error: unknown): error is { validationContext?: string; fault?: Fault } {
  return codeOf(error) === 'FST_ERR_VALIDATION'
}
