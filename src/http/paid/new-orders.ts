/**
 * Who may open an order: the rules of the operator that are asked only where no order exists. They keep nobody from
 * what was paid: a repeat, a poll, a credential or a settlement never asks.
 */
import type { IncomingMessage } from 'node:http'
import type { Db } from '../../db/db.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { createCeilings, type MaxSales } from '../../payment/ceilings.ts'
import { type ClientAddress, clientNetwork, type IsListed, networkList } from '../client-address.ts'
import { problem } from '../errors.ts'
import { EGRESS_OPEN_ORDERS, LIMITS, type Limit } from '../limits.ts'

export type NewOrders = {
  /**
   * @param isOwner the right token of a capability came with it, which a blocked network does not take away.
   * @throws Problem if this client may not open an order now.
   */
  admit(request: IncomingMessage, isOwner: boolean): Promise<void>
  /** Whether a ceiling on the sales of a day keeps this client from opening an order now. */
  isSoldOut(request: IncomingMessage): Promise<boolean>
  /**
   * The limit on new orders that counts for this client, and how many unpaid ones its network may have open.
   * @param openOrders for a network like any other; null for any number.
   */
  limitsOf(request: IncomingMessage, openOrders: number | null): { quote: Limit; maxOpen?: number }
  /** Networks that the operator does not serve; null without any. Never asked of what was paid for. */
  isBlocked: IsListed | null
}

export function createNewOrders({
  blockedNetworks,
  egressNetworks,
  maxSales,
  clientAddress,
  refuseStrangers = () => undefined,
  ...deps
}: {
  blockedNetworks: readonly string[]
  egressNetworks: readonly string[]
  maxSales: MaxSales
  clientAddress: ClientAddress
  /** @throws Problem for whom a local simulator gives nothing. */
  refuseStrangers?: (request: IncomingMessage) => void
  db: Pick<Db, 'read'>
  clock: Clock
  log: Log
}): NewOrders {
  const isBlocked = blockedNetworks.length === 0 ? null : networkList(blockedNetworks)
  const ceilings = createCeilings(maxSales, deps)
  const isEgress = egressNetworks.length === 0 ? null : networkList(egressNetworks)
  const soldOutForMs = async (request: IncomingMessage): Promise<number | null> =>
    (await ceilings?.waitMs(clientNetwork(clientAddress(request)))) ?? null
  return {
    isBlocked,
    limitsOf(request, openOrders) {
      const hasMany = isEgress?.(clientAddress(request)) ?? false
      return {
        quote: hasMany ? LIMITS.quoteEgress : LIMITS.quote,
        ...(openOrders === null
          ? {}
          : { maxOpen: openOrders * (hasMany ? EGRESS_OPEN_ORDERS : 1) }),
      }
    },
    async admit(request, isOwner) {
      refuseStrangers(request)
      if (!isOwner && isBlocked?.(clientAddress(request))) throw problem('network refused')
      const waitMs = await soldOutForMs(request)
      if (waitMs === null) return
      throw problem('sold out', { 'retry-after': String(Math.ceil(waitMs / 1000)) })
    },
    isSoldOut: async (request) => (await soldOutForMs(request)) !== null,
  }
}
