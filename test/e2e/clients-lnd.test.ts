/** Clients of other people, buying from a real LND with another one as their wallet. */
import { after, before, describe, test } from 'node:test'
import { missingNodes, startTestbed, type Testbed } from '../support/nodes/testbed.ts'
import { startServer } from '../support/server.ts'
import { clientsBuy } from './client-market.ts'
import { type Books, openBooks, sellingOver } from './lnd-market.ts'

describe('clients and LND', { skip: await missingNodes() }, () => {
  let testbed: Testbed
  let books: Books

  before(async () => {
    testbed = await startTestbed()
    books = openBooks(testbed.alice)
  })
  after(() => testbed?.close())

  clientsBuy('LND', async (t) => {
    const server = await startServer(t, {
      ...(await sellingOver(t, testbed.alice)),
      MAYFLY_BASE_URL: 'http://localhost:8402',
    })
    return {
      server,
      pay: testbed.pay,
      isBalanced: () => books.balance(server),
    }
  })

  test('every payment that the node ever received has bought something', () => books.close())
})
