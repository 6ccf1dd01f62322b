/**
 * Unpaid bytes: how the room for bytes that wait for their payment is shared, so that whoever takes
 * all he can leaves room for others, and a small secret finds some long after large ones have filled
 * the rest. Nothing that was quoted is ever taken back.
 *
 * Every change begins with the counter of the whole. All others are only changed by who holds that
 * row, so that they are exact on any engine, and instances never wait for each other in a circle.
 */
import type { Statement } from '../db/db.ts'
import { widerNetwork } from '../http/client-address.ts'

/** How many bytes may wait for their payment. */
export type UnpaidBytes = { perNetwork: number; inAll: number }

/** One part of so many is for small bodies alone. */
const SMALL_SHARE = 4
/** What a small body is, and how much of them one client network may have in that part. */
const SMALL_BYTES = 64 * 1024
const SMALL_PER_NETWORK = 128 * 1024
/** Of what is free in a part, a network of the wider size takes one part of so many at most. */
const NETWORK_SHARE = 8

const ALL = 'all'

/**
 * Counts the bytes of an order that is not paid yet, or is refused: the whole, its client network, and
 * the part that has room for it, the common one first.
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

/** Uncounts an order's bytes and forgets its reservation; does nothing for any other order. */
export const releaseUnpaid = (orderId: string): Statement[] => [
  ...uncount(orderId),
  dropReservation(orderId),
]

/** The same for bytes that are paid. Refused where they are not reserved any more. */
export const settleUnpaid = (orderId: string): Statement[] => [
  ...uncount(orderId),
  { ...dropReservation(orderId), expect: 1 },
]

const dropReservation = (orderId: string): Statement => ({
  text: 'delete from whisper_reservation where order_id = $1',
  values: [orderId],
})

const uncount = (orderId: string): Statement[] => [
  {
    text: `update whisper_unpaid set byte_count = byte_count - (${RESERVED_BYTES})
      where scope = '${ALL}' and exists (${RESERVED_BYTES})`,
    values: [orderId],
  },
  {
    text: `update whisper_unpaid set byte_count = byte_count - (${RESERVED_BYTES})
      where scope in (${scopesOf('r.order_id = $1')})`,
    values: [orderId],
  },
]

/**
 * Counts anew from the reservations. It leaves out the counters of networks that have nothing, and puts
 * right what an instance of an older version, which knows of no parts, has counted meanwhile.
 */
export const recountUnpaid = (): Statement[] => [
  {
    text: `update whisper_unpaid
      set byte_count = (select coalesce(sum(byte_count), 0) from whisper_reservation)
      where scope = '${ALL}'`,
    values: [],
  },
  { text: `delete from whisper_unpaid where scope <> '${ALL}' or byte_count = 0`, values: [] },
  {
    text: `insert into whisper_unpaid (scope, byte_count)
      select scope, sum(byte_count) from (
        select r.client_network as scope, r.byte_count from whisper_reservation r
        union all select r.part, r.byte_count from whisper_reservation r
        union all select ${WIDER}, r.byte_count from whisper_reservation r
        union all select ${NARROW}, r.byte_count from whisper_reservation r where r.part = 'small'
      ) counted
      where true group by scope
      on conflict (scope) do update set byte_count = excluded.byte_count`,
    values: [],
  },
]

/** What a reservation is counted under in its part; its own network in the small one alone. */
const WIDER = `r.part || ' around ' || r.wider_network`
const NARROW = `r.part || ' ' || r.client_network`

const RESERVED_BYTES = 'select r.byte_count from whisper_reservation r where r.order_id = $1'

function scopesOf(condition: string): string {
  return ['r.client_network', 'r.part', WIDER, NARROW]
    .map((scope) => `select ${scope} from whisper_reservation r where ${condition}`)
    .join(' union all ')
}

/** The casts give the comparison a type on engines that infer it from the parameters alone. */
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
 * A wider network with these bytes has no more than its share of what the others leave free, which
 * is then true of each network inside it, and means that there is room at all.
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
