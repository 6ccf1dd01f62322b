/** Ciphertexts in the store: the reservations of quotes, and the reads left of paid ones. */
import { type Db, insertRow, limitedTo, type Row, type Statement } from '../db/db.ts'
import { noteRead } from './receipt-store.ts'
import { releaseUnpaid, reserveUnpaid, settleUnpaid, type UnpaidBytes } from './unpaid.ts'

/** The facts of a WHISPER that never change while it lives, so that they can be cached. */
export type WhisperFacts = {
  public_id: string
  read_token_hash: Uint8Array
  reveal_at: number | null
  expires_at: number
  /** 1 if each read is noted on a receipt. */
  has_receipt: number
  /** 1 if it waits for a switch. */
  has_switch: number
  /** Null if the last read was spent in between. */
  byte_count: number | null
} & Row

/** A WHISPER whose time is over, and whether somebody may be told. */
export type ExpiredWhisper = Pick<WhisperFacts, 'public_id' | 'expires_at' | 'has_receipt'>

/** Stores the bytes of an unpaid order. Refused if its limits have no room for them. */
export function reserveCiphertext(
  reserved: { orderId: string; clientNetwork: string; ciphertext: Uint8Array },
  limits: UnpaidBytes,
): Statement[] {
  const { orderId, clientNetwork, ciphertext } = reserved
  return [
    ...reserveUnpaid({ orderId, clientNetwork, bytes: ciphertext.length }, limits),
    {
      text: 'insert into whisper_ciphertext (order_id, ciphertext) values ($1, $2)',
      values: [orderId, ciphertext],
    },
  ]
}

/**
 * Stores the bytes again for an order that turned out to be paid after they were released. They count
 * against no limit, since they no longer await payment.
 */
export function restoreCiphertext(restored: {
  orderId: string
  clientNetwork: string
  ciphertext: Uint8Array
}): Statement[] {
  const { orderId, clientNetwork, ciphertext } = restored
  return [
    {
      text: `insert into whisper_reservation (order_id, client_network, byte_count)
        values ($1, $2, 0) on conflict (order_id) do nothing`,
      values: [orderId, clientNetwork],
    },
    {
      text: `insert into whisper_ciphertext (order_id, ciphertext) values ($1, $2)
        on conflict (order_id) do nothing`,
      values: [orderId, ciphertext],
    },
  ]
}

/** Deletes the bytes of an order that will not be paid. Does nothing without a reservation. */
export const releaseCiphertext = (orderId: string): Statement[] => [
  {
    text: `delete from whisper_ciphertext where order_id = (
      select order_id from whisper_reservation where order_id = $1)`,
    values: [orderId],
  },
  ...releaseUnpaid(orderId),
]

/** Turns reserved bytes into a WHISPER. Refused if the reservation is gone. */
export const insertWhisper = (
  whisper: Pick<
    WhisperFacts,
    'public_id' | 'read_token_hash' | 'reveal_at' | 'expires_at' | 'has_receipt' | 'has_switch'
  > & { order_id: string; reads_left: number },
): Statement[] => [...settleUnpaid(whisper.order_id), insertRow('whisper', whisper)]

/**
 * Spends one read and returns the bytes. `read` carries every condition, `bytes` returns the bytes, `forget`
 * deletes them after the last read, and `receipt` tells the buyer. They are one unit, so that a spent read
 * always gets its bytes, and is always on the receipt.
 */
export const spendRead = (
  { public_id: publicId, has_receipt }: Pick<WhisperFacts, 'public_id' | 'has_receipt'>,
  now: number,
) => ({
  read: {
    text: `update whisper set reads_left = reads_left - 1
      where public_id = $1 and reads_left > 0 and expires_at > $2 and suspended_at is null
        and (reveal_at is null or reveal_at <= $2)`,
    values: [publicId, now],
    expect: 1,
  },
  bytes: {
    text: `select c.ciphertext from whisper w join whisper_ciphertext c on c.order_id = w.order_id
      where w.public_id = $1`,
    values: [publicId],
    expect: 1,
  },
  forget: [
    {
      text: `delete from whisper_ciphertext where order_id = (
        select order_id from whisper where public_id = $1 and reads_left = 0)`,
      values: [publicId],
    },
    {
      text: 'delete from whisper where public_id = $1 and reads_left = 0',
      values: [publicId],
    },
  ],
  receipt: has_receipt === 1 ? [noteRead(publicId, now)] : [],
})

/** Deletes a WHISPER and its bytes. Refused if it is gone. */
export const dropWhisper = (publicId: string): Statement[] => [
  {
    text: `delete from whisper_ciphertext where order_id = (
      select order_id from whisper where public_id = $1)`,
    values: [publicId],
  },
  { text: 'delete from whisper where public_id = $1', values: [publicId], expect: 1 },
]

export function createWhisperStore(db: Db) {
  return {
    async facts(publicId: string): Promise<WhisperFacts | null> {
      const [facts] = await db.read<WhisperFacts>(
        `select w.public_id, w.read_token_hash, w.reveal_at, w.expires_at, w.has_receipt, w.has_switch,
           octet_length(c.ciphertext) as byte_count
         from whisper w left join whisper_ciphertext c on c.order_id = w.order_id
         where w.public_id = $1 and w.suspended_at is null`,
        publicId,
      )
      return facts ?? null
    },

    /** Whether it may be read once it is revealed. */
    async isThere(publicId: string): Promise<boolean> {
      const rows = await db.read(
        'select 1 from whisper where public_id = $1 and suspended_at is null',
        publicId,
      )
      return rows.length > 0
    },

    expired: (now: number, limit: number): Promise<ExpiredWhisper[]> =>
      db.read<ExpiredWhisper>(
        `select public_id, expires_at, has_receipt from whisper
          where expires_at <= $1 order by expires_at ${limitedTo(2)}`,
        now,
        limit,
      ),
  }
}
