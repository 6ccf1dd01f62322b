/**
 * Reads request bodies as bytes. It counts the bytes that arrive, and does not trust the headers. A request whose body
 * is refused or has no meaning is answered at once, so that its client can read the answer while it still sends: Node
 * throws the rest away, until the time of the request is over.
 */
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { parseStrictJsonBytes } from '../lib/json.ts'
import type { Phrase } from '../protocol/errors.ts'
import { invalid, type Problem, problem } from './errors.ts'
import type { BodyKind, BodyReservation, Memory } from './memory.ts'
import { linesOf } from './server/requests.ts'
import { NO_JSON } from './validation.ts'

/** Retry-After without memory: by then, the uploads that fill it now are complete or timed out. */
const RETRY_UPLOAD_SECONDS = 10
/** The first allocation for a body in several chunks. Keeping the chunks would cost some hundred bytes each. */
const FIRST_BYTES = 16 * 1024

export type BodyOptions = {
  /** The error for a body above the limit. Default `request too large`. */
  tooLarge?: Phrase | undefined
  /** Reserves more memory; false refuses the body with `rate limited`. */
  reserve?: (bytes: number) => boolean
  /** Aborted when the memory goes to another body, which refuses this one with `rate limited`. */
  evicted?: AbortSignal
}

/**
 * The whole body, at most `limit` bytes.
 * @throws Problem for a refused body; `request timeout` when the client disconnects.
 */
export function readBody(
  request: IncomingMessage,
  limit: number,
  { tooLarge = 'request too large', reserve = () => true, evicted }: BodyOptions = {},
): Promise<Buffer> {
  const declared = declaredBytes(request)
  // Most bodies arrive together with the headers, and need no listeners.
  const isHere = request.complete && !request.destroyed && request.readableLength <= limit
  if (isHere && (declared ?? 0) <= limit && reserve(request.readableLength)) {
    return Promise.resolve((request.read() as Buffer | null) ?? Buffer.alloc(0))
  }
  return new Promise((resolve, reject) => {
    // The client may have disconnected before, while its order was looked up. No event would follow.
    if (request.destroyed) return reject(problem('request timeout'))
    if (declared !== null && declared > limit) return reject(problem(tooLarge))
    const body = createGrowingBuffer(declared ?? limit)
    let bytes = 0

    /** Without a listener the bytes that still come are thrown away. */
    function refuse(reason: Problem): void {
      request.off('data', add)
      body.drop()
      reject(reason)
    }

    function add(chunk: Buffer): void {
      bytes += chunk.length
      if (bytes > limit) refuse(problem(tooLarge))
      else if (reserve(body.growth(chunk.length))) body.add(chunk)
      else refuse(noMemory())
    }

    evicted?.addEventListener('abort', () => refuse(noMemory()))
    request.on('data', add)
    request.on('end', () => resolve(body.taken()))
    request.on('error', () => refuse(problem('request timeout')))
    request.on('close', () => {
      if (!request.complete) refuse(problem('request timeout'))
    })
  })
}

/**
 * The whole body, at most `limit` bytes, with the memory that it holds from its first byte until its answer is over.
 * @throws Problem for a refused body; `rate limited` without room.
 */
export async function receiveBody(
  { raw: request }: Pick<FastifyRequest, 'raw'>,
  { raw: response }: Pick<FastifyReply, 'raw'>,
  {
    memory,
    kind,
    limit,
    tooLarge,
    ...from
  }: {
    memory: Memory
    kind: BodyKind
    network: string
    /** The inbox to which it goes. */
    inbox?: string
    limit: number
    tooLarge?: Phrase | undefined
  },
): Promise<{ body: Buffer; reservation: BodyReservation }> {
  const reservation = memory.forBody(kind, from)
  if (!reservation) throw noMemory()
  response.once('close', reservation.release)
  try {
    const { reserve, evicted } = reservation
    const body = await readBody(request, limit, { reserve, evicted, tooLarge })
    reservation.received()
    return { body, reservation }
  } catch (error) {
    // The connection may have closed before, such as while an order was looked up: no event would follow.
    reservation.release()
    throw error
  }
}

/** This much is thrown away behind an answer, for a client that still sends. The largest body of a plan is 8 MiB. */
const REST_BYTES = 10 * 1024 * 1024

/** Throws away the rest of a body that nobody reads, and cuts off a sender that goes on and on. */
export function boundRest(request: IncomingMessage): void {
  let bytes = 0
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > REST_BYTES) request.destroy()
  })
  request.on('error', () => undefined)
}

/**
 * For the `onRequest` of a route that takes no body. What is sent all the same is thrown away, whatever its headers
 * say of it: many clients send a content type with every request.
 */
export async function ignoreBody({ headers }: FastifyRequest): Promise<void> {
  // Fastify parses what these announce.
  for (const name of ['content-type', 'content-length', 'transfer-encoding']) delete headers[name]
}

/** The declared length of a request's body; null if it comes in chunks, or there is no body. */
export function declaredBytes({ headers }: IncomingMessage): number | null {
  const length = headers['content-length']
  return length === undefined ? null : Number(length)
}

/** Whether the whole body has arrived together with the headers, or there is no body. */
export function hasArrived(request: IncomingMessage): boolean {
  if (request.complete) return true
  const isChunked = request.headers['transfer-encoding'] !== undefined
  return !isChunked && request.readableLength >= (declaredBytes(request) ?? 0)
}

/** A buffer that doubles its size as it grows, up to `max`. */
function createGrowingBuffer(max: number) {
  let memory: Buffer = Buffer.alloc(0)
  let used = 0
  const capacityFor = (bytes: number): number => {
    const needed = used + bytes
    if (needed <= memory.length) return memory.length
    // Most bodies are one chunk, which is kept without a copy.
    if (used === 0) return needed
    return Math.max(needed, Math.min(max, Math.max(FIRST_BYTES, 2 * needed)))
  }
  return {
    /** The additional memory that is needed to add this many bytes. */
    growth: (bytes: number): number => capacityFor(bytes) - memory.length,
    add(chunk: Buffer): void {
      const capacity = capacityFor(chunk.length)
      if (used === 0) memory = chunk
      else {
        if (capacity > memory.length) {
          const larger = Buffer.allocUnsafeSlow(capacity)
          memory.copy(larger, 0, 0, used)
          memory = larger
        }
        chunk.copy(memory, used)
      }
      used += chunk.length
    },
    drop(): void {
      memory = Buffer.alloc(0)
      used = 0
    },
    /** All bytes. They are not kept here, because the request lives until it is answered. */
    taken(): Buffer {
      const whole = used === memory.length ? memory : memory.subarray(0, used)
      memory = Buffer.alloc(0)
      used = 0
      return whole
    },
  }
}

const noMemory = (): Problem =>
  problem('rate limited', { 'retry-after': String(RETRY_UPLOAD_SECONDS) })

/** Takes bodies of JSON alone, in which no object has a member twice. The library would take the last one. */
export function parseStrictJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    if (hasSecondType(request)) return done(secondType())
    const value = parseStrictJsonBytes(body as Buffer)
    if (value !== undefined) return done(null, value)
    const { json = 'invalid request body' } = request.routeOptions.config.invalid ?? {}
    done(invalid(json, NO_JSON))
  })
}

/** Its body is read by the first line, and whoever stands in between may go by the last. */
const hasSecondType = ({ raw }: FastifyRequest): boolean =>
  linesOf('content-type', raw.rawHeaders) > 1

const secondType = (): Problem =>
  invalid('unsupported media type', { field: 'Content-Type', expected: 'one line' })

// Bodies that a purchase is bound to must arrive as they were sent.

/**
 * Refuses a second type, and encoded bodies: clients and proxies encode and decode, which changes the bytes of the
 * request.
 */
export function requirePlainBody(request: FastifyRequest): void {
  if (hasSecondType(request)) throw secondType()
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw invalid('unsupported media type', { field: 'Content-Encoding', expected: 'left out' })
  }
}

// Scopes of routes: what is said of bodies in one is true of its routes alone.

/** Fastify looks for the name of a scope without one in all files that are loaded. */
const NAMED = { [Symbol.for('fastify.display-name')]: 'scope' }

/** Mounts routes in a scope of their own. */
export function inScope(app: FastifyInstance, mount: (scope: FastifyInstance) => void): void {
  app.register(Object.assign(async (scope: FastifyInstance) => mount(scope), NAMED))
}
