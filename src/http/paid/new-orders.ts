/**
 * Who may open an order: the rules of the operator and the limits that are asked only where no order exists. They keep
 * nobody from what was paid: a repeat, a poll, a credential or a settlement never asks.
 */
import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Db } from '../../db/db.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { createCeilings, type MaxSales } from '../../payment/ceilings.ts'
import { type ClientAddress, clientNetwork, networkList } from '../client-address.ts'
import { checkoutUnavailable, problem } from '../errors.ts'
import { EGRESS_OPEN_ORDERS, LIMITS, type Limits } from '../limits.ts'

/** Whose order it is, and how many unpaid ones its network may have open: any number without `maxOpen`. */
export type Room = { clientNetwork: string; maxOpen?: number }

export type NewOrders = ReturnType<typeof createNewOrders>

export function createNewOrders({
  blockedNetworks,
  egressNetworks,
  maxSales,
  clientAddress,
  limits,
  refuseStrangers = () => undefined,
  ...deps
}: {
  blockedNetworks: readonly string[]
  egressNetworks: readonly string[]
  maxSales: MaxSales
  clientAddress: ClientAddress
  limits: Limits
  /** @throws Problem for whom a local simulator gives nothing. */
  refuseStrangers?: (request: IncomingMessage) => void
  db: Pick<Db, 'read'>
  clock: Clock
  log: Log
}) {
  const listOf = (blocks: readonly string[]) => (blocks.length === 0 ? null : networkList(blocks))
  const isBlocked = listOf(blockedNetworks)
  const isEgress = listOf(egressNetworks)
  const ceilings = createCeilings(maxSales, deps)
  const soldOutForMs = async (request: IncomingMessage): Promise<number | null> =>
    (await ceilings?.waitMs(clientNetwork(clientAddress(request)))) ?? null

  return {
    /** Networks that the operator does not serve; null without any. Never asked of what was paid for. */
    isBlocked,
    /** Whether a ceiling on the sales of a day keeps this client from opening an order now. */
    isSoldOut: async (request: IncomingMessage): Promise<boolean> =>
      (await soldOutForMs(request)) !== null,
    /**
     * Takes one from the limit on new orders of this client.
     * @param options.isOwner the right token of a capability came with it, which a blocked network does not take away.
     * @throws Problem if this client may not open an order now.
     */
    async admit(
      { request: { raw }, reply }: { request: FastifyRequest; reply: FastifyReply },
      { isOwner, isSelling }: { isOwner: boolean; isSelling: () => boolean },
    ): Promise<Room> {
      refuseStrangers(raw)
      const address = clientAddress(raw)
      if (!isOwner && isBlocked?.(address)) throw problem('network refused')
      const waitMs = await soldOutForMs(raw)
      if (waitMs !== null) {
        throw problem('sold out', { 'retry-after': String(Math.ceil(waitMs / 1000)) })
      }
      // A client that retries until the node is back must not use up its limit meanwhile.
      if (!isSelling()) throw checkoutUnavailable()
      const hasMany = isEgress?.(address) ?? false
      const network = clientNetwork(address)
      await limits.take(hasMany ? LIMITS.quoteEgress : LIMITS.quote, network, reply)
      const { openOrders } = limits
      if (openOrders === null) return { clientNetwork: network }
      const maxOpen = openOrders * (hasMany ? EGRESS_OPEN_ORDERS : 1)
      return { clientNetwork: network, maxOpen }
    },
  }
}
