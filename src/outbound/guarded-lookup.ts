/**
 * Resolves a name and checks its addresses as part of the connection. The socket connects to the
 * checked addresses, so a DNS answer that changes afterwards (rebinding) has no effect.
 */
import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns/promises'
import type { LookupFunction } from 'node:net'
import { isPublicAddress } from '../protocol/public-address.ts'
import { OutboundError } from './error.ts'

/** All addresses of a name. */
export type Resolve = (hostname: string) => Promise<LookupAddress[]>

export const systemResolve: Resolve = (hostname) => lookup(hostname, { all: true })

/** A `lookup` for sockets that fails if any address of the name is not public. */
export function guardedLookup(resolve: Resolve): LookupFunction {
  return (hostname, options, callback) => {
    resolvePublic(resolve, hostname).then(
      (addresses) => {
        const [first] = addresses
        if (options.all) callback(null, addresses)
        else if (first) callback(null, first.address, first.family)
      },
      (error: NodeJS.ErrnoException) => callback(error, ''),
    )
  }
}

/** The addresses of a name: at least one, and all of them public. @throws OutboundError */
export async function resolvePublic(resolve: Resolve, hostname: string): Promise<LookupAddress[]> {
  const addresses = await resolve(hostname)
  if (addresses.length === 0) throw new OutboundError('nowhere')
  // A private address among public ones is a sign of an attack, so the whole name is refused.
  if (!addresses.every(({ address }) => isPublicAddress(address))) {
    throw new OutboundError('not public')
  }
  return addresses
}
