/** The rules of WHISPER: ciphertext that can be read a limited number of times. */
import type { Alerts } from '../alerts/alerts.ts'
import { attempt, type Db } from '../db/db.ts'
import { createRemembered } from '../db/remembered.ts'
import type { HeldClock } from '../lib/clock.ts'
import { isId } from '../lib/ids.ts'
import { createSealing } from '../payment/sealing.ts'
import { isTokenOf } from '../secrets/tokens.ts'
import type { Bindings } from '../switches/switches.ts'
import { expiredAlert, readAlert } from './alerts.ts'
import {
  createWhisperStore,
  dropWhisper,
  reserveCiphertext,
  spendRead,
  type WhisperFacts,
} from './store.ts'
import type { UnpaidBytes } from './unpaid.ts'

const PURGE_AT_ONCE = 100

export type Reading =
  | { kind: 'revealed'; ciphertext: Buffer }
  | { kind: 'not revealed'; revealAt: number; retryAfterSeconds: number }
  /** Exhausted, expired or suspended. The reader gets the same answer as for an unknown id. */
  | { kind: 'gone' }

export function createWhisper(deps: {
  db: Db
  clock: HeldClock
  unpaidBytes: UnpaidBytes
  bindings: Pick<Bindings, 'isOpen'>
  alerts: Pick<Alerts, 'tell'>
}) {
  const { db, clock, unpaidBytes, bindings, alerts } = deps
  const store = createWhisperStore(db)
  const sealing = createSealing({ db, clock })
  const remembered = createRemembered(async (publicId) =>
    isId('whisper', publicId) ? store.facts(publicId) : null,
  )

  async function purge(now: number): Promise<number> {
    let dropped = 0
    for (;;) {
      const over = await store.expired(now, PURGE_AT_ONCE)
      for (const { public_id: publicId, expires_at, has_receipt } of over) {
        const told =
          has_receipt === 1 ? alerts.tell(publicId, expiredAlert(publicId, expires_at)) : []
        const statements = { whisper: dropWhisper(publicId), told }
        const done = await attempt(db.write({ lockKey: publicId, statements }))
        if ('rows' in done) dropped++
      }
      if (over.length < PURGE_AT_ONCE) return dropped
    }
  }

  /** The facts may be of a WHISPER that was destroyed or suspended meanwhile, here or on another instance. */
  async function shut(publicId: string, reading: Reading): Promise<Reading> {
    if (await store.isThere(publicId)) return reading
    remembered.forget(publicId)
    return GONE
  }

  return {
    /** Statements that store the bytes of a quote. Refused if too many bytes await payment. */
    reserve: (reserved: Parameters<typeof reserveCiphertext>[0]) =>
      reserveCiphertext(reserved, unpaidBytes),

    /** The WHISPER that this token reads, or null. `read` checks whether reads are left. */
    async find(publicId: string, token: string): Promise<WhisperFacts | null> {
      const facts = await remembered.of(publicId)
      return facts && isTokenOf('whisper_read', token, facts.read_token_hash) ? facts : null
    },

    /** Spends a read durably, then returns the bytes. */
    async read(whisper: WhisperFacts): Promise<Reading> {
      const { public_id: publicId, expires_at, reveal_at, has_switch, has_receipt } = whisper
      const isShut = has_switch === 1 && !(await bindings.isOpen(publicId))
      const now = clock.now()
      if (expires_at <= now) return GONE
      if (isShut) return shut(publicId, shutBySwitch(reveal_at, now))
      // While the clock is held, nobody knows whether the time has come.
      const isEarly = reveal_at !== null && (reveal_at > now || clock.isHeld())
      if (isEarly) {
        const retryAfterSeconds = Math.max(Math.ceil((reveal_at - now) / 1000), HELD_SECONDS)
        return shut(publicId, { kind: 'not revealed', revealAt: reveal_at, retryAfterSeconds })
      }
      const done = await attempt(
        db.write({
          lockKey: publicId,
          statements: {
            ...spendRead(whisper, now),
            told: has_receipt === 1 ? alerts.tell(publicId, readAlert(publicId, now)) : [],
            seal: sealing.statements(publicId, now),
          },
        }),
      )
      if ('refused' in done) {
        remembered.forget(publicId)
        return GONE
      }
      sealing.sealed(publicId)
      const bytes = done.rows.bytes[0]?.ciphertext
      if (!(bytes instanceof Uint8Array)) throw new Error('a read was spent on no bytes')
      const ciphertext = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      return { kind: 'revealed', ciphertext }
    },

    /** Deletes exhausted and expired whispers. @returns the number of deleted ones. */
    purge,
  }
}

export type WhisperService = ReturnType<typeof createWhisper>

/** The earliest that a reader may come again for a secret whose time may have come. */
const HELD_SECONDS = 1

const GONE = { kind: 'gone' } as const

const MINUTE_MS = 60_000

/**
 * The answer while a switch holds it shut. It is the same for every monitor, and whether the switch waits, is armed
 * or dead: a reader must learn nothing of the monitor.
 */
function shutBySwitch(revealAt: number | null, now: number): Reading {
  const nextMinute = Math.ceil((now + MINUTE_MS) / MINUTE_MS) * MINUTE_MS
  return {
    kind: 'not revealed',
    revealAt: Math.max(revealAt ?? 0, nextMinute),
    retryAfterSeconds: MINUTE_MS / 1000,
  }
}
