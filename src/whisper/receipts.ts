/** The rules of receipts: the buyer of a WHISPER learns when it was read, and may destroy it. */
import type { Alerts } from '../alerts/alerts.ts'
import { attempt, type Db } from '../db/db.ts'
import { type Clock, rfc3339 } from '../lib/clock.ts'
import { isId } from '../lib/ids.ts'
import { createSealing } from '../payment/sealing.ts'
import { isTokenOf } from '../secrets/tokens.ts'
import { dropBindings } from '../switches/store.ts'
import type { Bindings } from '../switches/switches.ts'
import {
  dropReceipts,
  endedReceipts,
  findReceipt,
  noteDestroyed,
  type ReceiptRow,
} from './receipt-store.ts'
import type { WhisperReceipt, WhisperState } from './schema.ts'
import { dropWhisper } from './store.ts'

/** A day after the end, and the minute by which an end may have been rounded. */
const SHOW_ENDED_MS = (24 * 60 + 1) * 60 * 1000
const PURGE_RECEIPTS = 200

export function createReceipts({
  db,
  clock,
  bindings,
  alerts,
}: {
  db: Db
  clock: Clock
  bindings: Bindings
  alerts: Pick<Alerts, 'drop'>
}) {
  const sealing = createSealing({ db, clock })
  const isForgotten = ({ ended_at }: ReceiptRow): boolean => ended_at + SHOW_ENDED_MS <= clock.now()

  return {
    /** The receipt that this token opens, or null. */
    async owned(publicId: string, token: string): Promise<ReceiptRow | null> {
      if (!isId('whisper', publicId)) return null
      const receipt = await findReceipt(db, publicId)
      if (!receipt || isForgotten(receipt)) return null
      return isTokenOf('whisper_receipt', token, receipt.receipt_token_hash) ? receipt : null
    },

    /** Seals the delivery after the token was used: the sale's answer is not repeated any more. */
    used: ({ public_id }: ReceiptRow) => sealing.seal(public_id),

    /** What the buyer is told. */
    async shown(receipt: ReceiptRow): Promise<WhisperReceipt> {
      const state = stateAt(receipt, clock.now())
      return {
        publicId: receipt.public_id,
        state,
        readLimit: receipt.read_limit,
        readsSpent: receipt.reads_spent,
        readsLeft: receipt.ended_at > clock.now() ? receipt.read_limit - receipt.reads_spent : 0,
        reads: receipt.reads.split(' ').flatMap((at) => (at === '' ? [] : rfc3339(Number(at)))),
        revealAt: receipt.reveal_at === null ? null : rfc3339(receipt.reveal_at),
        createdAt: rfc3339(receipt.created_at),
        expiresAt: rfc3339(receipt.expires_at),
        endedAt: receipt.ended_at > clock.now() ? null : rfc3339(receipt.ended_at),
        switch: await bindings.status(receipt.public_id, receipt.expires_at),
      }
    },

    hasEnded: ({ ended_at }: ReceiptRow): boolean => ended_at <= clock.now(),

    /** Deletes the bytes now, and who is told. Returns false if the WHISPER has ended before. */
    async destroy({ public_id: publicId }: ReceiptRow): Promise<boolean> {
      const now = clock.now()
      const done = await attempt(
        db.write({
          lockKey: publicId,
          statements: {
            receipt: noteDestroyed(publicId, now),
            whisper: dropWhisper(publicId),
            told: alerts.drop([publicId]),
            seal: sealing.statements(publicId, now),
          },
        }),
      )
      if ('refused' in done) return false
      sealing.sealed(publicId)
      return true
    },

    /** Deletes receipts a day after their end. @returns the number of deleted ones. */
    async purge(now: number): Promise<number> {
      const endedBefore = now - SHOW_ENDED_MS
      await bindings.purge(now)
      let gone = 0
      for (;;) {
        const over = await endedReceipts(db, endedBefore, PURGE_RECEIPTS)
        if (over.length > 0) {
          await db.write({
            lockKey: 'whisper_receipt',
            statements: {
              receipts: dropReceipts(over),
              bindings: dropBindings(over),
              told: alerts.drop(over),
            },
          })
        }
        gone += over.length
        if (over.length < PURGE_RECEIPTS) return gone
      }
    },
  }
}

export type Receipts = ReturnType<typeof createReceipts>

/** Precedence of what has ended: destroyed, then exhausted, then expired. */
function stateAt(receipt: ReceiptRow, now: number): WhisperState {
  if (receipt.ended_at > now) return receipt.suspended_at === null ? 'active' : 'suspended'
  if (receipt.was_destroyed === 1) return 'destroyed'
  return receipt.reads_spent >= receipt.read_limit ? 'exhausted' : 'expired'
}
