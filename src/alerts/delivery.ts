/**
 * Sends what waits: claims destinations whose turn it is, tries each once, and notes how it ended. A destination
 * has one alert under way, and one that waits for its next attempt takes no place.
 */
import { randomBytes } from 'node:crypto'
import { attempt, type Db } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { nextTurn, paceAfter, pauseAfter, ready, type Turn } from './pacing.ts'
import type { Attempt, Sealed, Send, Target } from './send.ts'
import {
  type AlertStore,
  claimDestination,
  contentOf,
  type DestinationRow,
  type DueRow,
  dropAlerts,
  dropWaiting,
  noteAttempt,
  type Outcome,
  releaseDestination,
} from './store.ts'

/** Longer than the longest attempt. After a crash, the destination waits this long. */
const HOLD_MS = 30_000
/** Attempts under way, in all. A third of them is left to first attempts. */
const MAX_UNDER_WAY = 256
const MAX_REPEATS_UNDER_WAY = 170
/** To one host. Whoever has a busy host waits for it, and nobody else does. */
export const PER_HOST = 8
/** Rows that one look reads. */
const MAX_LOOK = 512

export type Delivery = {
  /** Starts every attempt that is due and has a place. Resolves when they have started. */
  turn(): Promise<void>
  /** Resolves when no attempt is under way. */
  idle(): Promise<void>
}

type UnderWay = Pick<DueRow, 'destination_id' | 'owner_id' | 'host'> & { isRepeat: boolean }

export function createDelivery(deps: {
  db: Db
  store: AlertStore
  sealed: Sealed
  send: Send
  clock: Clock
  log: Log
  /** Called at the end of each attempt. */
  onAttempt: (outcome: Outcome) => void
  /** Called when a place is free again, and something may wait for it. */
  onFree: () => void
}): Delivery {
  const { db, store, sealed, send, clock, log, onAttempt, onFree } = deps
  const instance = randomBytes(9).toString('base64url')
  const underWay = new Map<string, UnderWay>()
  const running = new Set<Promise<void>>()

  async function turn(): Promise<void> {
    const now = clock.now()
    for (;;) {
      if (underWay.size >= MAX_UNDER_WAY) return
      const due = await store.due(now, {
        ...{ limit: MAX_LOOK, exceptHosts: busyHosts() },
        exceptRepeats: repeatsUnderWay() >= MAX_REPEATS_UNDER_WAY,
      })
      const picked = pick(due)
      for (const one of picked) start(one)
      // What was left out waits for a place. A look that was full may have hidden others.
      if (picked.length === 0 || due.length < MAX_LOOK) return
    }
  }

  function busyHosts(): string[] {
    const counts = new Map<string, number>()
    for (const { host } of underWay.values()) counts.set(host, (counts.get(host) ?? 0) + 1)
    return [...counts].filter(([, count]) => count >= PER_HOST).map(([host]) => host)
  }

  const repeatsUnderWay = (): number =>
    [...underWay.values()].filter(({ isRepeat }) => isRepeat).length

  /** First attempts before repeats, one of an owner per host, as many as have a place. */
  function pick(due: DueRow[]): UnderWay[] {
    const places = createPlaces([...underWay.values()])
    return due
      .filter(({ destination_id }) => !underWay.has(destination_id))
      .map(({ destination_id, owner_id, host, attempts }) => {
        return { destination_id, owner_id, host, isRepeat: attempts > 0 }
      })
      .sort((a, b) => Number(a.isRepeat) - Number(b.isRepeat))
      .filter(places.take)
  }

  function start(one: UnderWay): void {
    underWay.set(one.destination_id, one)
    const work = tryOnce(one)
      .catch((error) => log.error({ event: 'alerts.attempt_failed', reason: String(error) }))
      .finally(() => {
        underWay.delete(one.destination_id)
        running.delete(work)
        onFree()
      })
    running.add(work)
  }

  async function tryOnce({ destination_id, owner_id }: UnderWay): Promise<void> {
    const now = clock.now()
    const hold = { holder: instance, now, until: now + HOLD_MS }
    const { claimed } = await db.write({
      lockKey: owner_id,
      statements: { claimed: claimDestination(destination_id, hold) },
    })
    const destination = claimed[0] as DestinationRow | undefined
    if (!destination) return
    const waiting = await store.waiting(destination_id)
    const next = nextTurn(destination, ready(waiting, now))
    if (!next) {
      const [first] = waiting
      const { last_position: done_position, attempts } = destination
      // What was stored meanwhile may have to wait for its time, and comes first then.
      return release(
        destination,
        first ? { attempts, nextAt: first.not_before } : { done_position },
      )
    }
    const target = targetOf(destination, sealed, now)
    const tried: Attempt = target ? await send(target, messageOf(next)) : UNREADABLE
    onAttempt(tried.outcome)
    await finish(destination, next, tried)
  }

  async function finish(destination: DestinationRow, next: Turn, tried: Attempt): Promise<void> {
    const { destination_id } = destination
    const { alert, dropped } = next
    const at = clock.now()
    // Not the destination's: the message that it has tried may have given way to this one.
    const attempts = alert.attempts + 1
    const pace = alert.attempts === 0 ? paceAfter(destination, at) : paceOf(destination)
    const isDelivered = tried.outcome === '2xx'
    const pause = isDelivered || tried.isGone ? null : pauseAfter(attempts, tried.retryAfterMs)
    const isDone = pause === null
    const outcome = tried.outcome
    const note = noteAttempt(alert, {
      ...{ at, outcome, doneAt: isDone ? at : null, coalesced: dropped.length },
    })
    const rest = [note, ...dropAlerts(destination_id, dropped)]
    if (tried.isGone) rest.push(dropWaiting(destination_id))
    await release(
      destination,
      isDone
        ? {
            ...pace,
            done_position: alert.position,
            nextAt: Math.max(at, pace.not_before),
            state: tried.isGone ? 'gone' : 'active',
          }
        : { ...pace, attempts, nextAt: at + pause },
      rest,
    )
    const about = { ownerId: destination.owner_id, format: destination.format }
    if (tried.isGone) log.info({ event: 'alerts.disabled', ...about })
    else if (isDone && !isDelivered) log.info({ event: 'alerts.given_up', outcome, ...about })
  }

  async function release(
    destination: DestinationRow,
    next: Partial<Parameters<typeof releaseDestination>[1]>,
    rest: ReturnType<typeof dropAlerts> = [],
  ): Promise<void> {
    const kept = { done_position: destination.done_position, attempts: 0, nextAt: clock.now() }
    const to = { ...kept, ...paceOf(destination), state: destination.state, ...next }
    // Refused after the lease: another instance has the destination, or it is gone.
    await attempt(
      db.write({
        lockKey: destination.owner_id,
        statements: { destination: releaseDestination(destination, to), rest },
      }),
    )
  }

  return {
    turn,
    async idle() {
      while (running.size > 0) await Promise.all(running)
    },
  }
}

/** The places that those under way leave. `take` says whether one more has a place, and takes it. */
function createPlaces(underWay: UnderWay[]): { take(one: UnderWay): boolean } {
  const ofHost = new Map<string, number>()
  const taken = new Set<string>()
  let all = 0
  let repeats = 0
  const isFree = ({ owner_id, host, isRepeat }: UnderWay): boolean =>
    all < MAX_UNDER_WAY &&
    !(isRepeat && repeats >= MAX_REPEATS_UNDER_WAY) &&
    (ofHost.get(host) ?? 0) < PER_HOST &&
    !taken.has(`${owner_id} ${host}`)
  const note = ({ owner_id, host, isRepeat }: UnderWay): void => {
    all++
    if (isRepeat) repeats++
    ofHost.set(host, (ofHost.get(host) ?? 0) + 1)
    taken.add(`${owner_id} ${host}`)
  }
  for (const one of underWay) note(one)
  return {
    take(one) {
      const has = isFree(one)
      if (has) note(one)
      return has
    },
  }
}

/** No configured secret opens the destination. */
const UNREADABLE: Attempt = {
  outcome: 'failed',
  isGone: false,
  retryAfterMs: null,
  has: () => false,
}

const paceOf = ({ not_before, day_started_at, day_count }: DestinationRow) => ({
  ...{ not_before, day_started_at, day_count },
})

const messageOf = ({ alert }: Turn) => ({
  id: alert.message_id,
  type: alert.type,
  occurredAt: alert.occurred_at,
  content: contentOf(alert),
})

/** The destination with what is secret of it, or null if no configured secret opens it. */
export function targetOf(destination: DestinationRow, sealed: Sealed, now: number): Target | null {
  const { destination_id: id, format, owner_id: ownerId } = destination
  const open = (some: Uint8Array): string | null => sealed.open(some, id)?.plain ?? null
  const target = open(destination.sealed_target)
  const current = open(destination.sealed_secret)
  if (target === null || current === null) return null
  const { sealed_old_secret: sealedOld, old_secret_until: until } = destination
  const old = sealedOld !== null && until !== null && until > now ? open(sealedOld) : null
  return { format, target, ownerId, secrets: old === null ? [current] : [current, old] }
}
