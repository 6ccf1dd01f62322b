/**
 * Sends what waits: claims destinations whose turn it is, tries each once, and notes how it ended. A destination
 * has one alert under way, and one that waits for its next attempt takes no place. Below: how often a destination gets
 * something, what it gets once there is more than that, and when a message is tried again.
 */
import { attempt, type Db } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { type Attempt, NOTHING, type Sealed, type Send, type Target } from './send.ts'
import {
  type AlertRow,
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

/** How long a claim lasts: longer than the longest attempt. After a crash, the destination waits this long. */
const CLAIM_MS = 30_000
/** Attempts under way, in all. A third of them is left to first attempts. */
const MAX_UNDER_WAY = 256
const MAX_REPEATS_UNDER_WAY = 170
/** To one host. Whoever has a busy host waits for it, and nobody else does. */
export const PER_HOST = 8
/** Rows that one look reads. */
const MAX_LOOK = 512

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
}) {
  const { db, store, sealed, send, clock, log, onAttempt, onFree } = deps
  const underWay = new Map<string, UnderWay>()
  const running = new Set<Promise<void>>()

  /** Starts every attempt that is due and has a place. Resolves when they have started. */
  async function turn(): Promise<void> {
    const now = clock.now()
    while (underWay.size < MAX_UNDER_WAY) {
      const hosts = new Set([...underWay.values()].map(({ host }) => host))
      const due = await store.due(now, {
        limit: MAX_LOOK,
        exceptHosts: [...hosts].filter(isBusy),
        exceptRepeats: hasEnoughRepeats(),
      })
      const firstBeforeRepeats = due
        .map((row) => ({ ...row, isRepeat: row.attempts > 0 }))
        .sort((a, b) => Number(a.isRepeat) - Number(b.isRepeat))
      let started = 0
      for (const one of firstBeforeRepeats) {
        if (!hasPlace(one)) continue
        start(one)
        started++
      }
      // What was left out waits for a place. A look that was full may have hidden others.
      if (started === 0 || due.length < MAX_LOOK) return
    }
  }

  function countOf(isCounted: (one: UnderWay) => boolean): number {
    let count = 0
    for (const one of underWay.values()) if (isCounted(one)) count++
    return count
  }
  const isBusy = (host: string): boolean => countOf((one) => one.host === host) >= PER_HOST
  const hasEnoughRepeats = (): boolean => countOf((one) => one.isRepeat) >= MAX_REPEATS_UNDER_WAY

  /** An owner has one place for each host, so no destination is tried twice at once. */
  const hasPlace = ({ owner_id, host, isRepeat }: UnderWay): boolean =>
    underWay.size < MAX_UNDER_WAY &&
    !(isRepeat && hasEnoughRepeats()) &&
    !isBusy(host) &&
    countOf((one) => one.owner_id === owner_id && one.host === host) === 0

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
    const { claimed } = await db.write({
      lockKey: owner_id,
      statements: { claimed: claimDestination(destination_id, { now, until: now + CLAIM_MS }) },
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
    const target = targetOf(destination, sealed)
    // Without a target, no configured secret opens the destination.
    const tried: Attempt = target
      ? await send(target, messageOf(next))
      : { ...NOTHING, outcome: 'failed' }
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
    const note = noteAttempt(alert, { at, outcome, doneAt: isDone ? at : null })
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
    // Refused after the claim: another instance has the destination, or it is gone.
    await attempt(
      db.write({
        lockKey: destination.owner_id,
        statements: { destination: releaseDestination(destination, to), rest },
      }),
    )
  }

  return {
    turn,
    /** Resolves when no attempt is under way. */
    async idle() {
      while (running.size > 0) await Promise.all(running)
    },
  }
}

const paceOf = ({ not_before, day_started_at, day_count }: DestinationRow) => ({
  not_before,
  day_started_at,
  day_count,
})

const messageOf = ({ alert }: Turn) => ({
  id: alert.message_id,
  type: alert.type,
  occurredAt: alert.occurred_at,
  content: contentOf(alert),
})

/** The destination with what is secret of it, or null if no configured secret opens it. */
export function targetOf(destination: DestinationRow, sealed: Sealed): Target | null {
  const { destination_id: id, format, owner_id: ownerId } = destination
  const target = sealed.open(destination.sealed_target, id)
  const secret = sealed.open(destination.sealed_secret, id)
  return target === null || secret === null ? null : { format, target, ownerId, secret }
}

/** At most one alert a minute and 60 a day: more of them say no more, and could flood a stranger. */
const PAUSE_MS = 60_000
const PER_DAY = 60
const DAY_MS = 24 * 60 * 60 * 1000

export type Turn = {
  /** The alert whose turn it is. */
  alert: AlertRow
  /** Those that are never sent, because a later state says more. */
  dropped: number[]
}

/**
 * The turn of a destination with waiting alerts, in their order. Those that the pace held back are coalesced to
 * the last state; warnings are all sent.
 */
export function nextTurn(
  destination: Pick<DestinationRow, 'not_before'>,
  waiting: readonly AlertRow[],
): Turn | null {
  const [first] = waiting
  if (!first) return null
  const readyAt = Math.max(first.occurred_at, first.not_before)
  const isHeldBack = first.attempts === 0 && readyAt < destination.not_before
  if (!isHeldBack) return { alert: first, dropped: [] }
  const lastState = waiting.findLast(({ replaces }) => replaces === 1)
  const isDropped = (alert: AlertRow): boolean => alert.replaces === 1 && alert !== lastState
  const alert = waiting.find((some) => !isDropped(some)) ?? first
  return { alert, dropped: waiting.filter(isDropped).map(({ position }) => position) }
}

/** Those that may be told now: what comes after one that must wait for its time waits with it. */
export function ready(waiting: readonly AlertRow[], now: number): AlertRow[] {
  const first = waiting.findIndex(({ not_before: notBefore }) => notBefore > now)
  return first === -1 ? [...waiting] : waiting.slice(0, first)
}

/** The pace after an alert was sent for the first time. Its repeats count no more. */
export function paceAfter(
  destination: Pick<DestinationRow, 'day_started_at' | 'day_count'>,
  now: number,
): Pick<DestinationRow, 'not_before' | 'day_started_at' | 'day_count'> {
  const { day_started_at: startedAt } = destination
  const isOver = now >= startedAt + DAY_MS
  const day_started_at = isOver ? now : startedAt
  const day_count = isOver ? 1 : destination.day_count + 1
  const not_before = day_count >= PER_DAY ? day_started_at + DAY_MS : now + PAUSE_MS
  return { not_before, day_started_at, day_count }
}

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** The pause after each failed attempt, as Standard Webhooks recommend. After the last one the message is given up. */
const PAUSES = [
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
]

/** A receiver that asks for more patience than this gets no more. */
const MAX_PAUSE = 24 * HOUR

/**
 * The pause before the next attempt in milliseconds, or null if the message is given up.
 * @param attempts how many have failed, at least 1.
 * @param retryAfterMs what the receiver asked for, if it did.
 */
export function pauseAfter(attempts: number, retryAfterMs: number | null): number | null {
  const pause = PAUSES[attempts - 1]
  if (pause === undefined) return null
  return Math.max(pause, Math.min(retryAfterMs ?? 0, MAX_PAUSE))
}
