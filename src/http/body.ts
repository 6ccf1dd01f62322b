/** Reads request bodies as bytes. It counts the bytes that arrive, and does not trust the headers. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { parseStrictJsonBytes } from '../lib/json.ts'
import { type Phrase, type Problem, problem } from './errors.ts'

/** This much of a refused body is still read, so that the client can read the answer. */
const DRAIN_BYTES = 1024 * 1024
/** After this time, the uploads that fill the memory now are complete or timed out. */
const RETRY_UPLOAD_SECONDS = 10
/** The first allocation for a body in several chunks. Keeping the chunks would cost some hundred bytes each. */
const FIRST_BYTES = 16 * 1024

/** This many bytes of a body must arrive in each interval, until it is complete. */
export type MinimumRate = { everyMs: number; bytes: number }

export type BodyOptions = {
  /** The error for a body above the limit. Default `request too large`. */
  tooLarge?: Phrase
  /** Reserves more memory; false refuses the body with `rate limited`. */
  reserve?: (bytes: number) => boolean
  /** Aborted when the memory goes to another body, which refuses this one with `rate limited`. */
  evicted?: AbortSignal
  /** A slower body ends with `request timeout`. Without it only the server's own timeout applies. */
  minimumRate?: MinimumRate
}

/**
 * The whole body, at most `limit` bytes. If there is no memory for it, the request is answered at once, and
 * the rest of the body is drained after the answer.
 * @throws Problem for a refused body; `request timeout` when the client disconnects.
 */
export function readBody(
  request: IncomingMessage,
  limit: number,
  { tooLarge = 'request too large', reserve = () => true, evicted, minimumRate }: BodyOptions = {},
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
    const body = createGrowingBuffer(declared === null ? limit : Math.min(limit, declared))
    let bytes = 0
    let hasEnded = false
    let isAnswered = false
    let refusal: Problem | null = declared !== null && declared > limit ? closing(tooLarge) : null
    // The client has not sent the body, so there is nothing to drain.
    if (refusal && isWaitingForContinue(request)) return reject(refusal)
    sendContinue(request)
    const stopWatching = minimumRate
      ? watchRate(minimumRate, {
          received: () => bytes,
          onStalled: () => refuseNow(closing('request timeout')),
        })
      : () => undefined

    function refuseNow(reason: Problem): void {
      stopWatching()
      refusal ??= reason
      isAnswered = true
      body.drop()
      reject(refusal)
    }

    evicted?.addEventListener('abort', () => {
      if (!hasEnded && !refusal) refuseNow(noMemory())
    })
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > limit && !isAnswered) refusal ??= closing(tooLarge)
      if (!refusal && !reserve(body.growth(chunk.length))) refuseNow(noMemory())
      if (!refusal) return body.add(chunk)
      body.drop()
      if (bytes <= limit + DRAIN_BYTES) return
      if (isAnswered) return void request.destroy()
      request.pause()
      reject(refusal)
    })
    request.on('end', () => {
      hasEnded = true
      stopWatching()
      if (refusal) reject(refusal)
      else resolve(body.taken())
    })
    request.on('error', () => reject(problem('request timeout')))
    request.on('close', () => {
      stopWatching()
      if (!hasEnded) reject(problem('request timeout'))
    })
  })
}

/**
 * Drains the body of a request that was refused before it was read, so that the client can read the answer.
 * If the body is longer, the connection is closed.
 */
export function drainBody(request: IncomingMessage): void {
  let bytes = 0
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > DRAIN_BYTES) request.destroy()
  })
  request.on('error', () => undefined)
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

/** Calls `onStalled` after an interval with too few bytes. @returns a function that stops watching. */
function watchRate(
  rate: MinimumRate,
  { received, onStalled }: { received: () => number; onStalled: () => void },
): () => void {
  let before = 0
  const timer = setInterval(() => {
    const now = received()
    if (now - before >= rate.bytes) before = now
    else onStalled()
  }, rate.everyMs)
  return () => clearInterval(timer)
}

const noMemory = (): Problem =>
  problem('rate limited', { 'retry-after': String(RETRY_UPLOAD_SECONDS) })

const closing = (phrase: Phrase): Problem => problem(phrase, { connection: 'close' })

// Gives a route the bytes of its body. Fastify reads them whole, within a limit, so this is for callers with a
// token. Bodies that anyone may send are read by `body.ts`, which can charge them to a memory budget.

/** Takes bodies of these types as bytes in a scope of its own, and refuses all others. */
export function parseAsBytes(
  scope: FastifyInstance,
  { contentTypes, maxBytes }: { contentTypes: string[]; maxBytes: number },
): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser(
    contentTypes,
    { parseAs: 'buffer', bodyLimit: maxBytes },
    (_request, body, done) => done(null, body),
  )
}

/** Takes bodies of JSON alone, in which no object has a member twice. The library would take the last one. */
export function parseStrictJson(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
    const value = parseStrictJsonBytes(body as Buffer)
    if (value === undefined) done(new InvalidJson())
    else done(null, value)
  })
}

/** Named like the library's own errors, which the answer is made by. */
class InvalidJson extends Error {
  readonly code = 'FST_ERR_CTP_INVALID_JSON_BODY'
}

/** The body of a request to such a route; empty if there is none. */
export const rawBody = ({ body }: FastifyRequest): Buffer =>
  Buffer.isBuffer(body) ? body : Buffer.alloc(0)

// `Expect: 100-continue` (RFC 9110 §10.1.1): a client that asks before it sends the body.

/** Requests whose client waits for `100 Continue`, until that has been sent. */
const waiting = new WeakMap<IncomingMessage, ServerResponse>()

/**
 * Notes that the client waits before it sends the body. If the request is answered without a
 * `100 Continue`, the connection closes, because the body may or may not follow.
 */
export function deferContinue(request: IncomingMessage, response: ServerResponse): void {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers
  if (coding === undefined && Number(length ?? 0) === 0) return
  waiting.set(request, response)
  response.shouldKeepAlive = false
}

export function isWaitingForContinue(request: IncomingMessage): boolean {
  return waiting.has(request)
}

/** Sends `100 Continue`, if the client waits for it. */
export function sendContinue(request: IncomingMessage): void {
  const response = waiting.get(request)
  if (!response) return
  waiting.delete(request)
  response.shouldKeepAlive = !/\bclose\b/i.test(request.headers.connection ?? '')
  response.writeContinue()
}

// Bodies that a purchase is bound to must arrive as they were sent.

/** Refuses encoded bodies: clients and proxies encode and decode, which changes the bytes of the request. */
export function refuseEncoding(request: FastifyRequest): void {
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw problem('unsupported media type')
  }
}

// Scopes of routes: what is said of bodies in one is true of its routes alone.

/** Fastify looks for the name of a scope without one in all files that are loaded. */
const NAMED = { [Symbol.for('fastify.display-name')]: 'scope' }

/** Mounts routes in a scope of their own. */
export function inScope(app: FastifyInstance, mount: (scope: FastifyInstance) => void): void {
  app.register(Object.assign(async (scope: FastifyInstance) => mount(scope), NAMED))
}
