/** Receipts in the store: what the buyer of a WHISPER is told of its reads and its end. */
import { type Db, insertRow, limitedTo, places, type Row, type Statement } from '../db/db.ts'

/** Times are unix milliseconds. Those of reads are whole minutes. */
export type ReceiptRow = {
  public_id: string
  receipt_token_hash: Uint8Array
  read_limit: number
  reads_spent: number
  reads: string
  reveal_at: number | null
  created_at: number
  expires_at: number
  ended_at: number
  was_destroyed: number
  /** When the operator suspended the WHISPER, or null. */
  suspended_at: number | null
} & Row

const MINUTE_MS = 60_000

/** Of the receipt of the WHISPER $1, for what is told of it in the same unit. */
export const READS_SPENT = 'select reads_spent from whisper_receipt where public_id = $1'
export const READS_LEFT =
  'select read_limit - reads_spent from whisper_receipt where public_id = $1'

/** A sharper time of a read could tell who has read. */
export const wholeMinute = (unixMs: number): number => unixMs - (unixMs % MINUTE_MS)

export const insertReceipt = (
  receipt: Pick<
    ReceiptRow,
    'public_id' | 'receipt_token_hash' | 'read_limit' | 'reveal_at' | 'created_at' | 'expires_at'
  >,
): Statement =>
  insertRow('whisper_receipt', {
    ...receipt,
    reads_spent: 0,
    reads: '',
    ended_at: receipt.expires_at,
    was_destroyed: 0,
  })

/**
 * Notes a read, in the unit that spends it, to the minute. The last read ends the WHISPER, so its end is not sharper
 * either.
 */
export function noteRead(publicId: string, now: number): Statement {
  const minute = wholeMinute(now)
  return {
    text: `update whisper_receipt
      set reads_spent = reads_spent + 1,
          reads = $3 || reads,
          ended_at = case when reads_spent + 1 >= read_limit then $2 else ended_at end
      where public_id = $1`,
    values: [publicId, minute, `${minute} `],
    expect: 1,
  }
}

/** Holds while the WHISPER has not ended. Locks its receipt for the rest of the unit. */
export const livingReceipt = (publicId: string, now: number): Statement => ({
  text: `update whisper_receipt set public_id = public_id where public_id = $1 and ended_at > $2`,
  values: [publicId, now],
  expect: 1,
})

/** Notes that the owner has destroyed the WHISPER. Refused if it has ended before. */
export const noteDestroyed = (publicId: string, now: number): Statement => ({
  text: `update whisper_receipt set ended_at = $2, was_destroyed = 1
    where public_id = $1 and ended_at > $2`,
  values: [publicId, now],
  expect: 1,
})

export const dropReceipts = (publicIds: readonly string[]): Statement => ({
  text: `delete from whisper_receipt
    where public_id in (${places(publicIds)})`,
  values: [...publicIds],
})

/** The ids of at most `most` receipts of what ended before a time. */
export async function endedReceipts(
  db: Pick<Db, 'read'>,
  endedBefore: number,
  most: number,
): Promise<string[]> {
  const rows = await db.read<{ public_id: string }>(
    `select public_id from whisper_receipt where ended_at <= $1 ${limitedTo(2)}`,
    endedBefore,
    most,
  )
  return rows.map(({ public_id }) => public_id)
}

/** The receipt of a WHISPER, or null if it was bought without one, or is forgotten. */
export async function findReceipt(db: Db, publicId: string): Promise<ReceiptRow | null> {
  const [receipt] = await db.read<ReceiptRow>(
    `select r.*, w.suspended_at from whisper_receipt r left join whisper w on w.public_id = r.public_id
     where r.public_id = $1`,
    publicId,
  )
  return receipt ?? null
}
