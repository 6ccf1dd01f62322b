/** Sending to an inbox over HTTP: anyone may, with any method, body and sub-path. */

import type { FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import type { App } from '../http/app.ts'
import { declaredBytes, hasArrived, readBody, receiveBody } from '../http/body.ts'
import { type ClientAddress, clientNetwork, type IsProxied } from '../http/client-address.ts'
import { bearerToken } from '../http/credentials.ts'
import { Problem, problem } from '../http/errors.ts'
import type { Limits } from '../http/limits.ts'
import type { Memory } from '../http/memory.ts'
import type { NewOrders } from '../http/paid/new-orders.ts'
import { RESPONSE } from '../http/response-headers.ts'
import { answer, errors, NoContent } from '../http/schemas.ts'
import { Type } from '../lib/json-schema.ts'
import { MAX_HEADER_LINES } from './kept.ts'
import { INGEST } from './limits.ts'
import { ANSWERED, answerOf } from './response.ts'
import { type CatchResponse, publicId, type RefusalReason } from './schema.ts'
import type { CatchService, InboxFacts } from './service.ts'

type Sent = { Params: { publicId: string } }

/**
 * A body of at most this size that has already arrived is not in the budget: it costs less memory
 * than its connection, and only waits for the store.
 */
const SMALL_BYTES = 8 * 1024

/** A client has a method of its own for each of HTTP's. */
const SEND = {
  POST: 'sendToInbox',
  GET: 'sendGetToInbox',
  HEAD: 'sendHeadToInbox',
  PUT: 'sendPutToInbox',
  PATCH: 'sendPatchToInbox',
  DELETE: 'sendDeleteToInbox',
  OPTIONS: 'sendOptionsToInbox',
}

/** Any bytes of any type are stored. These are the types that clients ask for by name. */
const ANY_BODY = {
  description: 'Optional; bytes of any type are stored as sent',
  content: {
    'application/json': { schema: {}, example: { type: 'invoice.paid' } },
    'text/plain': { schema: Type.String(), example: 'hello' },
    'application/x-www-form-urlencoded': {
      schema: { type: 'object', additionalProperties: true },
      example: { type: 'invoice.paid' },
    },
    'application/octet-stream': { schema: Type.String({ format: 'binary' }), example: 'hello' },
  },
}

export function mountIngest(
  app: App,
  deps: {
    service: CatchService
    clientAddress: ClientAddress
    isProxied: IsProxied
    limits: Limits
    memory: Memory
    newOrders: Pick<NewOrders, 'isBlocked'>
  },
): void {
  const { service, clientAddress, isProxied, limits, memory } = deps
  const { isBlocked } = deps.newOrders

  /** The inbox, if it accepts the request by its headers. Only then is the body read. */
  async function admitted(
    { raw, params }: FastifyRequest<Sent>,
    reply: FastifyReply,
    { sourceIp, isHere }: { sourceIp: string; isHere: boolean },
  ): Promise<InboxFacts> {
    let inbox: InboxFacts | null = null
    try {
      // In the same words for every inbox, known or not.
      const isRefused =
        isBlocked?.(sourceIp) && !(await service.isSender(params.publicId, bearerToken(raw)))
      if (isRefused) throw problem('network refused')
      inbox = await service.facts(params.publicId)
      if (!inbox) throw unavailable()
      await limits.take(INGEST[inbox.planId], inbox.publicId, reply)
      if (raw.rawHeaders.length > 2 * MAX_HEADER_LINES) throw problem('request too large')
      if (!isHere && !(await service.takes(params.publicId, declaredBytes(raw) ?? 0))) {
        throw unavailable()
      }
      return inbox
    } catch (error) {
      const reason = reasonOf(error, 'rate_limited')
      if (inbox && reason) service.refused(inbox, reason)
      throw error
    }
  }

  /**
   * Answers before Fastify parses the body, since Fastify refuses a malformed content type. An inbox stores any
   * bytes, whatever the method and content type.
   */
  async function receive(request: FastifyRequest<Sent>, reply: FastifyReply): Promise<unknown> {
    const { raw } = request
    const sourceIp = clientAddress(raw)
    // A body that arrived together with the headers is readable after one turn of the microtasks.
    await null
    const isHere = hasArrived(raw)
    const inbox = await admitted(request, reply, { sourceIp, isHere })
    try {
      const limit = inbox.maxBytesPerRequest
      const isSmall = isHere && raw.readableLength <= SMALL_BYTES
      const { body } = isSmall
        ? { body: await readBody(raw, limit) }
        : await receiveBody(request, reply, {
            memory,
            kind: 'inbox',
            network: clientNetwork(sourceIp),
            inbox: inbox.publicId,
            limit,
          })
      const { path, query } = splitUrl(request.originalUrl)
      const stored = await service.ingest(inbox, {
        token: bearerToken(raw),
        method: request.method,
        path,
        query,
        rawHeaders: raw.rawHeaders,
        body,
        sourceIp,
        isProxied: isProxied(raw),
      })
      if (!stored) throw unavailable()
      if (!stored.response) return reply.code(204).send()
      return await respond(reply, request, { chosen: stored.response, query, body })
    } catch (error) {
      const reason = reasonOf(error, 'service_busy')
      if (reason) service.refused(inbox, reason)
      throw error
    }
  }

  const mount = (method: readonly HTTPMethods[], chosen: object): void => {
    app.route<Sent>({
      method: [...method],
      url: '/c/:publicId',
      config: { hasEmptyResponse: true },
      schema: {
        tags: ['catch'],
        summary: 'Send a request to an inbox; sub-paths are kept',
        description:
          'Anyone may send. The request is stored as it came: method, path below the inbox, query, headers and body. With the ingest token as its bearer, the event is marked authenticated.',
        operationId: SEND,
        security: [{}, { bearer: [] }],
        params: Type.Object({ publicId }),
        requestBody: ANY_BODY,
        response: { ...chosen, 204: NoContent, ...REFUSALS },
      },
      onRequest: receive,
      handler: () => {
        throw new Error('every request to an inbox is answered before')
      },
    })
  }
  mount(ANSWERED, { 200: CHOSEN })
  mount(['HEAD', 'OPTIONS'], {})
}

const REFUSALS = errors(
  'request too large',
  'catch unavailable',
  'network refused',
  'request timeout',
  'rate limited',
  'internal error',
)

const CHOSEN = answer(Type.String(), {
  type: 'text/plain',
  example: 'ok',
  description: 'What its owner has chosen, with any status that it can choose',
  headers: RESPONSE,
})

/**
 * Answers as the owner has chosen. Whatever it is, a browser stores it and neither shows, sniffs nor runs it, and
 * keeps no copy.
 */
async function respond(
  reply: FastifyReply,
  { method, raw }: FastifyRequest,
  { chosen, query, body }: { chosen: CatchResponse; query: string; body: Buffer },
): Promise<FastifyReply> {
  const isNavigation = /navigate/i.test(String(raw.headers['sec-fetch-mode'] ?? ''))
  const answer = await answerOf(chosen, { method, query, body, isNavigation })
  if (!answer) return reply.code(204).send()
  if (answer.retryAfter !== undefined) reply.header('retry-after', answer.retryAfter)
  if (answer.status === 204) return reply.code(204).send()
  return reply
    .code(answer.status)
    .type(`${answer.contentType}; charset=utf-8`)
    .header('content-disposition', 'attachment')
    .header('content-security-policy', "sandbox; default-src 'none'")
    .send(answer.body)
}

/** Why a request was refused; `busy` is what 429 means here. Null if the service has counted it. */
function reasonOf(error: unknown, busy: RefusalReason): RefusalReason | null {
  if (!(error instanceof Problem)) return 'service_unavailable'
  switch (error.phrase) {
    case 'catch unavailable':
      return null
    case 'rate limited':
      return busy
    case 'request too large':
      return 'too_large'
    case 'request timeout':
      return 'incomplete'
    default:
      return 'service_unavailable'
  }
}

/** Path and query as sent, without decoding: a sender may have signed them. */
function splitUrl(url: string): { path: string; query: string } {
  const afterPrefix = url.slice('/c/'.length)
  const end = afterPrefix.search(/[/?#]/)
  const rest = end === -1 ? '' : afterPrefix.slice(end)
  const mark = rest.indexOf('?')
  return mark === -1
    ? { path: rest, query: '' }
    : { path: rest.slice(0, mark), query: rest.slice(mark + 1) }
}

/** RFC 9110 §15.5.2 asks for a challenge with every 401. */
const unavailable = (): Problem => problem('catch unavailable', { 'www-authenticate': 'Bearer' })
