/** A Mayfly on the simulator for clients of other people. */
import assert from 'node:assert/strict'
import type { After } from '../support/folder.ts'
import { startServer } from '../support/server.ts'
import { query } from '../support/store.ts'
import type { Shop } from './client-market.ts'
import { CAPABILITIES } from './lnd-market.ts'

export async function sellingOnSimulator(t: After): Promise<Shop> {
  const server = await startServer(t, {
    // The address that credentials are bound to outlives a restart on another port.
    MAYFLY_BASE_URL: 'http://localhost:8402',
    MAYFLY_RATE_LIMITS: 'on',
  })
  return {
    server,
    pay: (bolt11) => server.pay(bolt11),
    async isBalanced() {
      const [paid, sold] = await Promise.all(
        [
          `select payment_hash from simulator_invoice where state = 'settled' order by 1`,
          `select o.payment_hash from (${CAPABILITIES}) as c
         left join purchase_order o on o.public_id = c.public_id and o.state = 'settled' order by 1`,
        ].map((text) => query(server, text)),
      )
      assert.deepEqual(sold, paid)
    },
  }
}
