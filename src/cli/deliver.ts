/** Sends an event until a receiver has taken it, or it has failed as often as it may. */
import { setTimeout as wait } from 'node:timers/promises'
import type { CatchEvent } from '../client/index.ts'
import { messageOf } from '../lib/errors.ts'
import { reasonOf } from '../lib/reason.ts'
import type { Cli } from './cli.ts'
import { type Forwarded, forward, isAccepted, pauseMs, retryPauseMs } from './forward.ts'
import type { Position } from './position.ts'
import { harmless, span } from './text.ts'

/** How often an event is sent to a receiver that hangs up without an answer, before it has failed. */
const HANG_UPS = 3

export type Delivering = {
  to: URL
  position: Position
  /** How often a failed event is sent again. */
  retries: number
  signal: AbortSignal
}

/** The last answer, and how often the event was sent. */
export type Delivered = Forwarded & { tries: number }

/**
 * Waits for a receiver that is down, however long: nothing was sent to it. Null if the signal ends this
 * before the receiver has taken the event; the next start then sends it again.
 */
export async function deliver(
  cli: Cli,
  event: CatchEvent,
  { to, position, retries, signal }: Delivering,
): Promise<Delivered | null> {
  let tries = 0
  let missed = 0
  for (;;) {
    let pause: number
    try {
      const answer = await forward(event, { to, onSent: () => position.sent(event.sequence) })
      tries++
      const isHangUp = answer.status === null && !answer.isLate
      const most = isHangUp ? Math.max(retries, HANG_UPS - 1) : retries
      if (isAccepted(answer) || answer.isRefused || tries > most) return { ...answer, tries }
      // Recorded before the pause, so that a stop or a kill in it does not lose the event.
      position.done(event.sequence - 1)
      pause = retries === 0 ? pauseMs(tries - 1) : retryPauseMs(tries - 1, Math.random())
      if (retries > 0) cli.note(failedOnce(event, { answer, pause, tries, most }))
    } catch (error) {
      if (signal.aborted) return null
      if (missed === 0) {
        const why = reasonOf(error) ?? messageOf(error)
        cli.warn(
          `${to.href} cannot be reached (${why}). Waiting for it; nothing is lost meanwhile.`,
        )
      }
      pause = pauseMs(missed++)
    }
    try {
      await wait(pause, undefined, { signal })
    } catch {
      return null
    }
  }
}

function failedOnce(
  { sequence }: CatchEvent,
  { answer, pause, tries, most }: { answer: Forwarded; pause: number; tries: number; most: number },
): string {
  const says = answer.answer === undefined ? '' : `, it says: ${harmless(answer.answer)}`
  const again = `Again in ${pause < 1000 ? 'a second' : span(Math.round(pause / 1000))}`
  return `#${sequence}: ${outcomeOf(answer)}${says}. ${again} (${tries} of ${most}).`
}

/** The outcome of a forwarded event, in a few words. */
export function outcomeOf({ status, durationMs, isRefused, error }: Forwarded): string {
  if (status !== null) return `${status} in ${durationMs} ms`
  return isRefused ? `not sent: ${error}` : `sent, but ${error ?? 'no answer'}`
}
