/** Clients of other people, buying on the simulator. */
import assert from 'node:assert/strict'
import { startServer } from '../support/server.ts'
import { query } from '../support/store.ts'
import { clientsBuy } from './client-market.ts'
import { CAPABILITIES } from './lnd-market.ts'

clientsBuy('the simulator', async (t) => {
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
})
