/**
 * The limits of unpaid bytes, which await their payment. A greedy buyer leaves room for others, and
 * small secrets still fit after large ones have filled their part. A quote is never taken back.
 *
 * The sum of each part is a counter; what a network has is the sum of its reservations. Every change first locks the
 * counter of the common part, in a statement of its own: on PostgreSQL a statement that waits for a lock goes on with
 * what it saw before. So changes see each other on both engines, and instances cannot deadlock.
 */
import type { Statement } from '../db/db.ts'
import { widerNetwork } from '../http/client-address.ts'

/** The maximum bytes that may await payment, per client network and in total. */
export type UnpaidBytes = { perNetwork: number; inAll: number }

/** One of this many equal parts is reserved for small bodies. */
const SMALL_SHARE = 4
/** The size of a small body, and the most that one client network may hold in that part. */
const SMALL_BYTES = 64 * 1024
const SMALL_PER_NETWORK = 128 * 1024
/** A wider network may hold at most one in this many of the bytes that are free in a part. */
const NETWORK_SHARE = 8

/**
 * Counts the bytes of an unpaid order in the first part that has room: the common part, then the one for small bodies.
 * Refused if neither has.
 */
export function reserveUnpaid(
  reserved: { orderId: string; clientNetwork: string; bytes: number },
  limits: UnpaidBytes,
): Statement[] {
  const { orderId, clientNetwork, bytes } = reserved
  const small = Math.floor(limits.inAll / SMALL_SHARE)
  return [
    LOCK,
    {
      text: RESERVE,
      values: [
        orderId,
        clientNetwork,
        widerNetwork(clientNetwork),
        bytes,
        limits.inAll - small,
        small,
        limits.perNetwork,
      ],
      expect: 1,
    },
    count(orderId, '+'),
  ]
}

/** Subtracts an order's bytes and deletes its reservation. Does nothing without a reservation. */
export const releaseUnpaid = (orderId: string): Statement[] => [
  ...uncount(orderId),
  dropReservation(orderId),
]

/** The same for an order that was paid. Refused if its reservation is gone. */
export const settleUnpaid = (orderId: string): Statement[] => [
  ...uncount(orderId),
  { ...dropReservation(orderId), expect: 1 },
]

const LOCK: Statement = {
  text: `update whisper_unpaid set byte_count = byte_count where part = 'common'`,
  values: [],
}

const uncount = (orderId: string): Statement[] => [LOCK, count(orderId, '-')]

const dropReservation = (orderId: string): Statement => ({
  text: 'delete from whisper_reservation where order_id = $1',
  values: [orderId],
})

/** Adds the bytes of a reservation to its part, or subtracts them. */
const count = (orderId: string, sign: '+' | '-'): Statement => ({
  text: `update whisper_unpaid set byte_count = byte_count ${sign} (
      select byte_count from whisper_reservation where order_id = $1)
    where part = (select part from whisper_reservation where order_id = $1)`,
  values: [orderId],
})

/** SQL of the bytes of a part, and of those that some reservations have. */
const inPart = (part: string): string =>
  `(select byte_count from whisper_unpaid where part = '${part}')`
const held = (by: string): string =>
  `(select cast(coalesce(sum(byte_count), 0) as bigint) from whisper_reservation where ${by})`

/**
 * The condition that a wider network, with these bytes, stays within its share of what the others
 * leave free. It implies the same for each network inside it, and that the part has room.
 */
const fits = (part: string, size: string): string =>
  `(cast($4 as bigint) + ${part}_own) * ${NETWORK_SHARE}
    <= cast(${size} as bigint) - ${part}_all + ${part}_own`

/**
 * $1 order, $2 client network, $3 the network around it, $4 bytes, $5 and $6 the sizes of the common
 * and of the small part, $7 the most of a client network. PostgreSQL needs the casts.
 */
const RESERVE = `insert into whisper_reservation
    (order_id, client_network, wider_network, byte_count, part)
  select $1, $2, $3, cast($4 as bigint), part from (
    select case
      when cast($4 as bigint) + of_network > cast($7 as bigint) then null
      when ${fits('common', '$5')} then 'common'
      when cast($4 as bigint) <= ${SMALL_BYTES}
        and cast($4 as bigint) + small_of_network <= ${SMALL_PER_NETWORK}
        and ${fits('small', '$6')} then 'small'
      end as part
    from (select
      ${inPart('common')} as common_all,
      ${inPart('small')} as small_all,
      ${held(`wider_network = $3 and part = 'common'`)} as common_own,
      ${held(`wider_network = $3 and part = 'small'`)} as small_own,
      ${held(`client_network = $2 and part = 'small'`)} as small_of_network,
      ${held('client_network = $2')} as of_network) as sums) as found
  where part is not null`
