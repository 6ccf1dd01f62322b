/** Clients of other people that know an address and a wallet: a real LND, which pays another one. */
import { describe, test } from 'node:test'
import { missingNodes } from '../support/nodes/testbed.ts'
import { startServer } from '../support/server.ts'
import { sellingOver } from './lnd-market.ts'
import { clientsBuyByUrl } from './one-url-market.ts'
import { shareNodes } from './shared-nodes.ts'

describe('clients with an address and LND', { skip: await missingNodes() }, () => {
  const nodes = shareNodes()

  clientsBuyByUrl('LND', async (t) => {
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

  test('every payment that the node received by one URL has bought something', () =>
    nodes.books.close())
})
