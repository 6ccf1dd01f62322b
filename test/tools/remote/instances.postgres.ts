import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CatchCapability } from '../../../src/client/index.ts'
import { twoInstances } from '../../support/instances.ts'
import {
  capabilityIn,
  challengeIn,
  connect,
  credentialOf,
  purchaseIn,
  readIn,
} from '../../support/mcp.ts'
import { aPostgresDatabase } from '../../support/postgres.ts'

test('a purchase that begins at one instance ends at any: 20 repeats at both pay once', async (t) => {
  const fleet = await twoInstances(t, await aPostgresDatabase())
  const [a, b] = await Promise.all([connect(t, fleet.a.url), connect(t, fleet.b.url)])
  const asked = await a.call('buy_inbox', { planId: 'spark' })
  const { purchaseId, quote } = purchaseIn(asked)
  const given = { planId: 'spark', purchaseId }
  assert.deepEqual(purchaseIn(await b.call('buy_inbox', given)), purchaseIn(asked))
  const meta = credentialOf(challengeIn(asked), await fleet.pay(quote))
  const results = await Promise.all(
    Array.from({ length: 20 }, (_, i) => (i % 2 ? a : b).call('buy_inbox', given, { meta })),
  )
  const tokens = results.map((each) => capabilityIn<CatchCapability>(each).ownerToken)
  assert.equal(new Set(tokens).size, 1)
  const [row] = await fleet.sql('select count(*)::int as count from purchase_order')
  assert.equal(row?.count, 1)
})

test('a webhook that arrives at one instance ends a wait at the other', async (t) => {
  const fleet = await twoInstances(t, await aPostgresDatabase())
  const [a, b] = await Promise.all([connect(t, fleet.a.url), connect(t, fleet.b.url)])
  const { quote, purchaseId } = purchaseIn(await a.call('buy_inbox', { planId: 'spark' }))
  await fleet.pay(quote)
  const { publicId, ownerToken: token } = capabilityIn<CatchCapability>(
    await b.call('check_order', { orderId: quote.orderId, purchaseId }),
  )
  const waiting = a.call('wait_for_webhook', { publicId, after: 0 }, { token })
  await fetch(`${fleet.b.url}/c/${publicId}`, { method: 'POST' })
  assert.equal(readIn(await waiting).reason, 'received')
})
