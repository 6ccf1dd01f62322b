/** Agents that buy at /mcp from a real LND, with another one as their wallet. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { CatchCapability } from '../../src/client/index.ts'
import {
  capabilityIn,
  challengeIn,
  connect,
  credentialOf,
  purchaseIn,
  REVISIONS,
} from '../support/mcp.ts'
import { missingNodes } from '../support/nodes/testbed.ts'
import { startServer } from '../support/server.ts'
import { sellingOver } from './lnd-market.ts'
import { shareNodes } from './shared-nodes.ts'

describe('agents and LND', { skip: await missingNodes() }, () => {
  const nodes = shareNodes()

  for (const revision of REVISIONS) {
    test(`a client of ${revision} buys with a credential and with check_order, and pays each once`, async (t) => {
      const server = await startServer(t, await sellingOver(t, nodes.testbed.alice))
      const agent = await connect(t, server.url, { revision })
      const asked = await agent.call('buy_inbox', { planId: 'spark' })
      const { purchaseId, quote } = purchaseIn(asked)
      const meta = credentialOf(challengeIn(asked), await nodes.testbed.pay(quote.bolt11))
      const given = { planId: 'spark', purchaseId }
      const results = await Promise.all(
        Array.from({ length: 5 }, () => agent.call('buy_inbox', given, { meta })),
      )
      const tokens = results.map((each) => capabilityIn<CatchCapability>(each).ownerToken)
      assert.equal(new Set(tokens).size, 1)

      const native = purchaseIn(await agent.call('buy_monitor', { planId: 'spark' }))
      await nodes.testbed.pay(native.quote.bolt11)
      const { orderId } = native.quote
      const checked = { orderId, purchaseId: native.purchaseId }
      assert.ok(capabilityIn(await agent.call('check_order', checked)))
      await nodes.books.balance(server)
    })
  }

  test('every payment that the node ever received has bought something', () => nodes.books.close())
})
