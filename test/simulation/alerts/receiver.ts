/**
 * A receiver of alerts: it takes, refuses, answers late, is away and comes back, and checks what it gets. What it finds
 * is told at the end of the run, because a restored backup may have caused it.
 */
import { createHmac } from 'node:crypto'
import type { Violation } from '../ledger.ts'
import type { Received, Reply } from '../world/outbound.ts'
import { world } from '../world/world.ts'

/** A message that came for the first time. */
export type Told = { id: string; type: string; since: string; body: string; isTaken: boolean }

export type Receiver = ReturnType<typeof openReceiver>

/** An attempt that was under way goes on for so long at most, and a signature of before may come. */
const UNDER_WAY_MS = 15_000
/** From the hold of a destination until its message comes, at most. */
const UNTIL_IT_COMES_MS = 3_000
/** Less than the service waits for an answer, the way there and back included. */
const ATTEMPT_MS = 9_500
/** Less than that, and longer. */
const SLOW_MS = 5_000
const TOO_LATE_MS = 12_000

const REFUSALS: readonly Reply[] = [
  { status: 404 },
  { status: 500 },
  { status: 302, headers: { location: 'https://elsewhere.example.com/' } },
  { status: 429, headers: { 'retry-after': '20' } },
  { status: 503, headers: { 'retry-after': '3' } },
]

/** @param mayEnd whether it may want no more at some time, and answers 410 from then on. */
export function openReceiver(host: string, { mayEnd }: { mayEnd: boolean }) {
  const { scheduler, outside } = world()
  const { random, elapsed } = scheduler
  const failing = random.pick([0, 0.2, 0.6])
  const slowness = random.pick([0, 0.3])
  const awayFrom = random.chance(0.4) ? random.next() * 100_000 : Number.POSITIVE_INFINITY
  const awayUntil = awayFrom + random.next() * 40_000
  const goneFrom =
    mayEnd && random.chance(0.3) ? 20_000 + random.next() * 80_000 : Number.POSITIVE_INFINITY
  let isCalm = false
  let endedAt = Number.POSITIVE_INFINITY
  let secret: { text: string; learnedAt: number } | null = null
  /** What is being answered. */
  const answering = new Set<{ cameAt: number; signal: AbortSignal }>()

  const receiver = {
    host,
    url: `https://${host}/hook`,
    /** In the order in which they came. */
    told: [] as Told[],
    /** What it found to be wrong. */
    faults: [] as Violation[],
    /** The destination is set anew, and its owner does not know the secret until it is answered. */
    forgetsSecret(): void {
      secret = null
    },
    learns(text: string): void {
      secret = { text, learnedAt: elapsed() }
    },
    /** The owner was told that the destination is forgotten, or has ended. */
    ends(): void {
      endedAt = Math.min(endedAt, elapsed())
    },
    /** It takes everything from now on. */
    calm(): void {
      isCalm = true
    },
    isGone: (): boolean => elapsed() >= goneFrom,
  }

  async function answer(received: Received): Promise<Reply> {
    const { headers, body, signal } = received
    const { type, data } = JSON.parse(body) as { type: string; data: Record<string, string> }
    const { 'webhook-id': id = '' } = headers
    if (elapsed() > endedAt + UNDER_WAY_MS) {
      find('a destination that ended is left alone', `${host} got ${type}`)
    }
    if (type === 'test') return replyTo({ body: data.nonce ?? '' })
    if (!isSigned(headers, body)) find('an alert is signed', `${host} cannot verify ${type} ${id}`)
    const one = noted({ id, type, since: data.since ?? '', body })
    // A clock that jumps ends the hold of the instance that is sending, which began before the message came.
    const isHeld = (turn: { cameAt: number; signal: AbortSignal }): boolean =>
      !turn.signal.aborted &&
      elapsed() < turn.cameAt + ATTEMPT_MS &&
      scheduler.jumpedAt() < turn.cameAt - UNTIL_IT_COMES_MS
    if ([...answering].some(isHeld)) {
      find('alerts come in order', `${host} got ${type} ${id} while it answered`)
    }
    const turn = { cameAt: elapsed(), signal }
    answering.add(turn)
    const reply = await replyTo({})
    answering.delete(turn)
    if (reply.status < 300) one.isTaken = true
    return reply
  }

  async function replyTo({ body = '' }: { body?: string }): Promise<Reply> {
    if (receiver.isGone()) return { status: 410 }
    if (isCalm) return { status: 200, body }
    if (random.chance(slowness)) await scheduler.sleep(random.next() * SLOW_MS)
    if (!random.chance(failing)) return { status: 200, body }
    // It has taken the message, and the service cannot know.
    if (random.chance(0.2)) await scheduler.sleep(TOO_LATE_MS)
    else return random.pick(REFUSALS)
    return { status: 200, body }
  }

  /** A repeat has the id and the body of the first. */
  function noted({ id, type, since, body }: Omit<Told, 'isTaken'>): Told {
    const known = receiver.told.find((each) => each.id === id)
    const same = receiver.told.find((each) => each.type === type && each.since === since)
    if (known !== same || (known && known.body !== body)) {
      find('a repeated alert is known by its id', `${host} got ${type} of ${since} as ${id}`)
    }
    if (known) return known
    const one = { id, type, since, body, isTaken: false }
    receiver.told.push(one)
    return one
  }

  function isSigned(headers: Received['headers'], body: string): boolean {
    if (!secret || elapsed() < secret.learnedAt + UNDER_WAY_MS) return true
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
    const key = Buffer.from(secret.text.replace(/^whsec_/, ''), 'base64')
    const signature = `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
    return (headers['webhook-signature'] ?? '').split(' ').includes(signature)
  }

  function find(promise: Violation['promise'], what: string): void {
    receiver.faults.push({ promise, what })
  }

  outside.hosts.set(host, (received) => {
    const isAway = !isCalm && elapsed() >= awayFrom && elapsed() < awayUntil
    return isAway ? { status: 502 } : answer(received)
  })
  return receiver
}
