/** What tests of the money of `mayfly mcp` look at: what was paid, and a service whose answers get stuck. */
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { budgetState } from '../../src/cli/vault/budget.ts'
import type { After } from './folder.ts'
import { startServer } from './server.ts'
import { between } from './serving.ts'
import { query, type Stored } from './store.ts'

export const paidInvoices = async (of: Stored): Promise<number> =>
  (await query(of, "select 1 as one from simulator_invoice where state = 'settled'")).length

/** Of today's budget. `home` is the data folder of a host. */
export const spentSats = (home: string): number =>
  budgetState({ folder: join(home, 'mayfly'), now: Date.now }).spentMsat / 1000

/**
 * A service behind a proxy that lets chosen requests hang, until it is told to pass all. `isPaid`: the request proves
 * its payment.
 */
export async function stuckService(t: After, isStuck: (path: string, isPaid: boolean) => boolean) {
  const server = await startServer(t)
  let isOpen = false
  const { promise: reached, resolve: tell } = Promise.withResolvers<void>()
  const stuck: ServerResponse[] = []
  const url = await between(t, server.url, (path, response, { headers }) => {
    const isPaid = headers['payment-preimage'] !== undefined
    if (isOpen || !isStuck(path, isPaid)) return false
    stuck.push(response)
    tell()
    return true
  })
  function open(): void {
    isOpen = true
    for (const response of stuck) response.destroy()
  }
  return { ...server, url, reached, open }
}
