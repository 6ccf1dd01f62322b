/** One name, one order, where two instances insert names at once, whichever engine the other tests have. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import type { CheckedCredential } from '../../src/payment/flows/flow.ts'
import { aPostgresDatabase } from '../support/postgres.ts'
import { aName, anOffer, aRequest, aShop, delivering, pendingQuote } from '../support/shop.ts'
import { openDatabase } from '../support/store.ts'

const ROUNDS = 200

test('a credential under a new key at one instance, and a purchase under that key at another, make one order of the key in 200 rounds', async (t) => {
  const databaseUrl = await aPostgresDatabase()
  const shop = await aShop(t, { databaseUrl })
  const elsewhereDb = await openDatabase(databaseUrl)
  t.after(() => elsewhereDb.close())
  const elsewhere = shop.another({}, elsewhereDb)
  const outcomes = { alias: 0, 'an order of its own': 0 }
  for (let round = 0; round < ROUNDS; round++) {
    const quote = pendingQuote(await shop.orders.open(aName(randomUUID()), aRequest(), anOffer()))
    const credential: CheckedCredential<string> = {
      kind: 'verified',
      paymentHash: quote.paymentHash,
      challengeId: '',
    }
    const by = aName(randomUUID())
    const redeem = async () => {
      const decision = await shop.orders.decide({ by, request: aRequest(), credential })
      assert.ok(decision.kind === 'known')
      return delivering(decision.act(null))
    }
    const [redeemed, opened] = await Promise.all([
      redeem(),
      elsewhere.open(by, aRequest(), anOffer()),
    ])
    assert.equal(redeemed.kind, 'delivered')
    const [{ count } = { count: 0 }] = await shop.db.read<{ count: number }>(
      `select count(*) as count from purchase_order o
       where not exists (select 1 from order_name n where n.name = o.order_id and n.order_id = o.order_id)`,
    )
    assert.equal(Number(count), 0, 'no order without its name')
    // Whoever asks under the key from now on gets the one that it names, at both instances.
    const bare = { by, credential: { kind: 'none' } } as const
    const { orderId } = await shop.orders.lookAhead(bare)
    assert.ok(orderId)
    assert.equal((await elsewhere.lookAhead(bare)).orderId, orderId)
    const isAlias = orderId === quote.orderId
    const shown = opened.kind === 'pending' ? opened.quote.orderId : null
    if (shown !== null) assert.equal(shown, orderId)
    else assert.deepEqual([opened.kind, isAlias], ['delivered', true])
    outcomes[isAlias ? 'alias' : 'an order of its own']++
  }
  const [orders] = await shop.db.read<{ count: number }>(
    'select count(*) as count from purchase_order',
  )
  assert.equal(Number(orders?.count), ROUNDS + outcomes['an order of its own'])
  // Both came first often enough for the rounds to say something.
  t.diagnostic(JSON.stringify(outcomes))
})
