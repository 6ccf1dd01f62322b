/** Clients of other people, buying from a real LND with another one as their wallet. */
import { describe, test } from 'node:test'
import { missingNodes } from '../support/nodes/testbed.ts'
import { startServer } from '../support/server.ts'
import { clientsBuy } from './client-market.ts'
import { sellingOver } from './lnd-market.ts'
import { shareNodes } from './shared-nodes.ts'

describe('clients and LND', { skip: await missingNodes() }, () => {
  const nodes = shareNodes()

  clientsBuy('LND', async (t) => {
    const server = await startServer(t, {
      ...(await sellingOver(t, nodes.testbed.alice)),
      MAYFLY_BASE_URL: 'http://localhost:8402',
    })
    return {
      server,
      pay: nodes.testbed.pay,
      isBalanced: () => nodes.books.balance(server),
    }
  })

  test('every payment that the node ever received has bought something', () => nodes.books.close())
})
