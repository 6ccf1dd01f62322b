/**
 * The limits of unpaid bytes, which await their payment. A greedy buyer leaves room for others, and
 * small secrets still fit after large ones have filled their part. A quote is never taken back.
 *
 * Every change first locks the row of the total, in a statement of its own: on PostgreSQL a statement that
 * waits for a lock goes on with what it saw before. The other counters change only under that lock, so they
 * are exact on both engines, and instances cannot deadlock.
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

const ALL = 'all'

/**
 * Counts the bytes of an unpaid order, or is refused. It counts them in the total, for the client
 * network, and in the first part that has room: the common part, then the one for small bodies.
 */
export function reserveUnpaid(
  reserved: { orderId: string; clientNetwork: string; bytes: number },
  limits: UnpaidBytes,
): Statement[] {
  const { orderId, clientNetwork, bytes } = reserved
  const small = Math.floor(limits.inAll / SMALL_SHARE)
  return [
    add(ALL, bytes, limits.inAll),
    add(clientNetwork, bytes, limits.perNetwork),
    {
      text: RESERVE,
      values: [
        orderId,
        clientNetwork,
        widerNetwork(clientNetwork),
        bytes,
        limits.inAll - small,
        small,
      ],
      expect: 1,
    },
    {
      text: `insert into whisper_unpaid (scope, byte_count)
        select r.part, r.byte_count from whisper_reservation r where r.order_id = $1
        union all
        select ${WIDER}, r.byte_count from whisper_reservation r where r.order_id = $1
        union all
        select ${NARROW}, r.byte_count from whisper_reservation r
        where r.order_id = $1 and r.part = 'small'
        on conflict (scope) do update
          set byte_count = whisper_unpaid.byte_count + excluded.byte_count`,
      values: [orderId],
    },
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

const dropReservation = (orderId: string): Statement => ({
  text: 'delete from whisper_reservation where order_id = $1',
  values: [orderId],
})

/** Subtracts an order's bytes. A counter that comes to nothing goes, so that no network leaves one behind. */
const uncount = (orderId: string): Statement[] => [
  {
    text: `update whisper_unpaid set byte_count = byte_count
      where scope = '${ALL}' and exists (${RESERVED_BYTES})`,
    values: [orderId],
  },
  {
    text: `update whisper_unpaid set byte_count = byte_count - (${RESERVED_BYTES})
      where scope = '${ALL}' and exists (${RESERVED_BYTES})`,
    values: [orderId],
  },
  {
    text: `update whisper_unpaid set byte_count = byte_count - (${RESERVED_BYTES})
      where scope in (${SCOPES})`,
    values: [orderId],
  },
  {
    text: `delete from whisper_unpaid where byte_count = 0 and scope in (${SCOPES})`,
    values: [orderId],
  },
]

/** The scopes of a reservation in its part: its wider network, and in the small part its own too. */
const WIDER = `r.part || ' around ' || r.wider_network`
const NARROW = `r.part || ' ' || r.client_network`

const RESERVED_BYTES = 'select r.byte_count from whisper_reservation r where r.order_id = $1'

const SCOPES = ['r.client_network', 'r.part', WIDER, NARROW]
  .map((scope) => `select ${scope} from whisper_reservation r where r.order_id = $1`)
  .join(' union all ')

/** PostgreSQL infers the type of the comparison from its parameters, so it needs the casts. */
const add = (scope: string, bytes: number, limit: number): Statement => ({
  text: `insert into whisper_unpaid (scope, byte_count)
    select $1, cast($2 as bigint) where cast($2 as bigint) <= cast($3 as bigint)
    on conflict (scope) do update set byte_count = whisper_unpaid.byte_count + excluded.byte_count
    where whisper_unpaid.byte_count + excluded.byte_count <= cast($3 as bigint)`,
  values: [scope, bytes, limit],
  expect: 1,
})

const counted = (scope: string): string =>
  `coalesce((select byte_count from whisper_unpaid where scope = ${scope}), 0)`

/**
 * The condition that a wider network, with these bytes, stays within its share of what the others
 * leave free. It implies the same for each network inside it, and that the part has room.
 */
const fits = (part: string, size: string): string =>
  `(cast($4 as bigint) + ${part}_own) * ${NETWORK_SHARE}
    <= cast(${size} as bigint) - ${part}_all + ${part}_own`

/**
 * $1 order, $2 client network, $3 the network around it, $4 bytes, $5 and $6 the sizes of the common
 * and of the small part.
 */
const RESERVE = `insert into whisper_reservation
    (order_id, client_network, wider_network, byte_count, part)
  select $1, $2, $3, cast($4 as bigint), part from (
    select case
      when ${fits('common', '$5')} then 'common'
      when cast($4 as bigint) <= ${SMALL_BYTES}
        and cast($4 as bigint) + small_network <= ${SMALL_PER_NETWORK}
        and ${fits('small', '$6')} then 'small'
      end as part
    from (select
      ${counted(`'common'`)} as common_all,
      ${counted(`'common around ' || cast($3 as text)`)} as common_own,
      ${counted(`'small'`)} as small_all,
      ${counted(`'small around ' || cast($3 as text)`)} as small_own,
      ${counted(`'small ' || cast($2 as text)`)} as small_network) as held) as found
  where part is not null`
