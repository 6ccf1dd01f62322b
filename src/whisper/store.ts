/** Ciphertexts in the store: what is reserved for a quote, and what a paid one has left to read. */
import type { Db, Row, Statement } from '../db/db.ts'

/** How many bytes may wait for their payment. */
export type UnpaidBytes = { perNetwork: number; inAll: number }

/** What never changes about a WHISPER while it lives. */
export type WhisperFacts = {
  public_id: string
  read_token_hash: Uint8Array
  reveal_at: number | null
  expires_at: number
} & Row

const ALL = 'all'

/** Stores the bytes of an order that is not paid yet, within both limits, or is refused. */
export function reserveCiphertext(
  reserved: { orderId: string; clientNetwork: string; ciphertext: Uint8Array },
  limits: UnpaidBytes,
): Statement[] {
  const { orderId, clientNetwork, ciphertext } = reserved
  return [
    addUnpaid(clientNetwork, ciphertext.length, limits.perNetwork),
    addUnpaid(ALL, ciphertext.length, limits.inAll),
    {
      text: `insert into whisper_reservation (order_id, client_network, byte_count) values ($1, $2, $3)`,
      values: [orderId, clientNetwork, ciphertext.length],
    },
    {
      text: 'insert into whisper_ciphertext (order_id, ciphertext) values ($1, $2)',
      values: [orderId, ciphertext],
    },
  ]
}

/** The casts give the comparison a type on engines that infer it from the parameters alone. */
const addUnpaid = (scope: string, bytes: number, limit: number): Statement => ({
  text: `insert into whisper_unpaid (scope, byte_count)
    select $1, cast($2 as bigint) where cast($2 as bigint) <= cast($3 as bigint)
    on conflict (scope) do update set byte_count = whisper_unpaid.byte_count + excluded.byte_count
    where whisper_unpaid.byte_count + excluded.byte_count <= cast($3 as bigint)`,
  values: [scope, bytes, limit],
  expect: 1,
})

/** Forgets the bytes of an order that will not be paid. Does nothing for any other order. */
export const releaseCiphertext = (orderId: string): Statement[] => [
  {
    text: `delete from whisper_ciphertext where order_id = (
      select order_id from whisper_reservation where order_id = $1)`,
    values: [orderId],
  },
  ...subtractUnpaid(orderId),
  dropReservation(orderId),
]

/** Makes a readable WHISPER of reserved bytes. Refused when they are gone. */
export const insertWhisper = (whisper: {
  publicId: string
  orderId: string
  readTokenHash: Uint8Array
  reads: number
  revealAt: number | null
  createdAt: number
  expiresAt: number
}): Statement[] => [
  ...subtractUnpaid(whisper.orderId),
  { ...dropReservation(whisper.orderId), expect: 1 },
  {
    text: `insert into whisper
      (public_id, order_id, read_token_hash, reads_left, reveal_at, created_at, expires_at)
      values ($1, $2, $3, $4, $5, $6, $7)`,
    values: [
      whisper.publicId,
      whisper.orderId,
      whisper.readTokenHash,
      whisper.reads,
      whisper.revealAt,
      whisper.createdAt,
      whisper.expiresAt,
    ],
  },
]

/** The network first, then the whole, as in reserving: the same order of locks everywhere. */
function subtractUnpaid(orderId: string): Statement[] {
  const reserved = (column: string): string =>
    `(select r.${column} from whisper_reservation r where r.order_id = $1)`
  const subtract = (scope: string): Statement => ({
    text: `update whisper_unpaid set byte_count = byte_count - ${reserved('byte_count')}
      where scope = ${scope} and exists ${reserved('order_id')}`,
    values: [orderId],
  })
  return [subtract(reserved('client_network')), subtract(`'${ALL}'`)]
}

const dropReservation = (orderId: string): Statement => ({
  text: 'delete from whisper_reservation where order_id = $1',
  values: [orderId],
})

/**
 * Spends one read and returns the bytes. The first statement carries every condition, the second
 * has the bytes, and with the last read the rest leaves nothing of them: all in one unit, so that
 * no read that was spent comes too late for its bytes.
 */
export const READ_BYTES = 1
export const spendRead = (publicId: string, now: number): Statement[] => [
  {
    text: `update whisper set reads_left = reads_left - 1
      where public_id = $1 and reads_left > 0 and expires_at > $2
        and (reveal_at is null or reveal_at <= $2)`,
    values: [publicId, now],
    expect: 1,
  },
  {
    text: `select c.ciphertext from whisper w join whisper_ciphertext c on c.order_id = w.order_id
      where w.public_id = $1`,
    values: [publicId],
    expect: 1,
  },
  {
    text: `delete from whisper_ciphertext where order_id = (
      select order_id from whisper where public_id = $1 and reads_left = 0)`,
    values: [publicId],
  },
  {
    text: 'delete from whisper where public_id = $1 and reads_left = 0',
    values: [publicId],
  },
]

/** Deletes one that is over, and its bytes. */
export const dropWhisper = (publicId: string): Statement[] => [
  {
    text: `delete from whisper_ciphertext where order_id = (
      select order_id from whisper where public_id = $1)`,
    values: [publicId],
  },
  { text: 'delete from whisper where public_id = $1', values: [publicId] },
]

/** Counters of networks that have nothing reserved any more. */
export const dropEmptyCounters = (): Statement => ({
  text: 'delete from whisper_unpaid where byte_count = 0',
  values: [],
})

export function createWhisperStore(db: Db) {
  return {
    async facts(publicId: string): Promise<WhisperFacts | null> {
      const [facts] = await db.read<WhisperFacts>(
        'select public_id, read_token_hash, reveal_at, expires_at from whisper where public_id = $1',
        publicId,
      )
      return facts ?? null
    },

    async expired(now: number, limit: number): Promise<string[]> {
      const rows = await db.read<{ public_id: string }>(
        'select public_id from whisper where expires_at <= $1 order by expires_at limit $2',
        now,
        limit,
      )
      return rows.map((row) => row.public_id)
    },
  }
}
