/** Reads request bodies as they are: counted while they arrive, never trusted by their headers. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Phrase, type Problem, problem } from './errors.ts'

/** So much of a refused body is still read, so that its sender can read our answer. */
const DRAIN_BYTES = 1024 * 1024
/** Bodies under way arrive or are timed out within this. */
const RETRY_UPLOAD_SECONDS = 10
/** What a body in several pieces begins with: a piece of one byte costs Node some hundred. */
const FIRST_BYTES = 16 * 1024

/** Requests whose sender waits for `100 Continue`, until it has been sent. */
const waiting = new WeakMap<IncomingMessage, ServerResponse>()

/**
 * Notes that the sender waits to be told before the body comes. Answered without that, the connection
 * closes: nobody can say whether the body still follows.
 */
export function holdBack(request: IncomingMessage, response: ServerResponse): void {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers
  if (coding === undefined && Number(length ?? 0) === 0) return
  waiting.set(request, response)
  response.shouldKeepAlive = false
}

/** Lets the body come, where its sender waits for that. */
export function letCome(request: IncomingMessage): void {
  const response = waiting.get(request)
  if (!response) return
  waiting.delete(request)
  response.shouldKeepAlive = !/\bclose\b/i.test(request.headers.connection ?? '')
  response.writeContinue()
}

/** How fast a body has to come: so many bytes in each such time, until it is whole. */
export type Pace = { everyMs: number; bytes: number }

export type BodyOptions = {
  /** What a body above the limit is refused with. Default `request too large`. */
  tooLarge?: Phrase
  /** Asked for the bytes that are held from now on; false refuses the body with `rate limited`. */
  take?: (bytes: number) => boolean
  /** Is handed what refuses the body with `rate limited`, should its room go to another one. */
  onGiveUp?: (giveUp: () => void) => void
  /** A slower body ends with `request timeout`. Left out: the server's own limit is all. */
  pace?: Pace
}

/**
 * The whole body, at most `limit` bytes. One that finds no room is answered at once, and the rest of it
 * runs out behind the answer.
 * @throws Problem for one that is refused; `request timeout` when the peer went away.
 */
export function readBody(
  request: IncomingMessage,
  limit: number,
  { tooLarge = 'request too large', take = () => true, onGiveUp, pace }: BodyOptions = {},
): Promise<Buffer> {
  const announced = announcedBytes(request)
  return new Promise((resolve, reject) => {
    // It may have gone away while its order was looked for, and would say so no more.
    if (request.destroyed) return reject(problem('request timeout'))
    const body = createGrowing(announced === null ? limit : Math.min(limit, announced))
    let bytes = 0
    let hasEnded = false
    let isAnswered = false
    let refusal: Problem | null = announced !== null && announced > limit ? closing(tooLarge) : null
    // Nothing is under way that would have to be read for the sake of the answer.
    if (refusal && waiting.has(request)) return reject(refusal)
    letCome(request)
    const endPace = pace
      ? keepPace(
          pace,
          () => bytes,
          () => refuseNow(closing('request timeout')),
        )
      : () => undefined

    function refuseNow(why: Problem): void {
      endPace()
      refusal ??= why
      isAnswered = true
      body.drop()
      reject(refusal)
    }

    onGiveUp?.(() => {
      if (!hasEnded && !refusal) refuseNow(noRoom())
    })
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > limit && !isAnswered) refusal ??= closing(tooLarge)
      if (!refusal && !take(body.growth(chunk.length))) refuseNow(noRoom())
      if (!refusal) return body.add(chunk)
      body.drop()
      if (bytes <= limit + DRAIN_BYTES) return
      if (isAnswered) return void request.destroy()
      request.pause()
      reject(refusal)
    })
    request.on('end', () => {
      hasEnded = true
      endPace()
      if (refusal) reject(refusal)
      else resolve(body.whole())
    })
    request.on('error', () => reject(problem('request timeout')))
    request.on('close', () => {
      endPace()
      if (!hasEnded) reject(problem('request timeout'))
    })
  })
}

/**
 * Lets the body of a request that was refused unread run out behind the answer, as far as its sender
 * needs it to read that; the connection of a longer one is closed.
 */
export function dropBody(request: IncomingMessage): void {
  let bytes = 0
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > DRAIN_BYTES) request.destroy()
  })
  request.on('error', () => undefined)
}

/** The length that a request says its body has, or null where it comes in chunks, or not at all. */
export function announcedBytes({ headers }: IncomingMessage): number | null {
  const length = headers['content-length']
  return length === undefined ? null : Number(length)
}

/** Whether the whole body came along with the headers, or there is none. */
export function hasArrived(request: IncomingMessage): boolean {
  if (request.complete) return true
  const isChunked = request.headers['transfer-encoding'] !== undefined
  return !isChunked && request.readableLength >= (announcedBytes(request) ?? 0)
}

/** A body in one piece of memory that grows by doubling, up to `most`: it holds no more than it says. */
function createGrowing(most: number) {
  let memory: Buffer = Buffer.alloc(0)
  let used = 0
  const capacityFor = (bytes: number): number => {
    const needed = used + bytes
    if (needed <= memory.length) return memory.length
    // Most bodies are one piece, which stays as it came.
    if (used === 0) return needed
    return Math.max(needed, Math.min(most, Math.max(FIRST_BYTES, 2 * needed)))
  }
  return {
    /** How many bytes more it will hold with so many added. */
    growth: (bytes: number): number => capacityFor(bytes) - memory.length,
    add(piece: Buffer): void {
      const capacity = capacityFor(piece.length)
      if (used === 0) memory = piece
      else {
        if (capacity > memory.length) {
          const larger = Buffer.allocUnsafeSlow(capacity)
          memory.copy(larger, 0, 0, used)
          memory = larger
        }
        piece.copy(memory, used)
      }
      used += piece.length
    },
    drop(): void {
      memory = Buffer.alloc(0)
      used = 0
    },
    whole: (): Buffer => (used === memory.length ? memory : memory.subarray(0, used)),
  }
}

/** Calls `stalled` once the bytes of a whole turn are too few. @returns what ends the watching. */
function keepPace(pace: Pace, bytes: () => number, stalled: () => void): () => void {
  let before = 0
  const timer = setInterval(() => {
    const now = bytes()
    if (now - before >= pace.bytes) before = now
    else stalled()
  }, pace.everyMs)
  return () => clearInterval(timer)
}

const noRoom = (): Problem =>
  problem('rate limited', { 'retry-after': String(RETRY_UPLOAD_SECONDS) })

const closing = (phrase: Phrase): Problem => problem(phrase, { connection: 'close' })
