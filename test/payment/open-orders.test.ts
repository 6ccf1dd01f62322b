import assert from 'node:assert/strict'
import { test } from 'node:test'
import { many } from '../support/orders.ts'
import { aName, anOffer, aRequest, aShop, QUOTE_SECONDS, SECOND } from '../support/shop.ts'
import { key } from '../support/watching.ts'

const MOST = 20

test('the unpaid orders of a network are limited exactly, and each network for itself', async (t) => {
  const { orders, clock, node, pay } = await aShop(t)
  const open = (from: number, clientNetwork = '203.0.113') =>
    many(30, (i) =>
      orders.open(aName(key(from + i)), aRequest(), anOffer({ clientNetwork, maxOpen: MOST })),
    )
  const first = await open(0)
  const quotes = first.flatMap((outcome) => (outcome.kind === 'pending' ? [outcome.quote] : []))
  assert.equal(quotes.length, MOST)
  const refused = first.filter(({ kind }) => kind !== 'pending')
  const full = { kind: 'rate limited', retryAfterSeconds: QUOTE_SECONDS }
  for (const outcome of refused) assert.deepEqual(outcome, full)
  // There is room again when the first of them ends.
  clock.advance(10 * SECOND)
  const retryAfterSeconds = QUOTE_SECONDS - 10
  assert.deepEqual((await open(500))[0], { kind: 'rate limited', retryAfterSeconds })
  const pending = async (answers: ReturnType<typeof open>) =>
    (await answers).filter(({ kind }) => kind === 'pending').length
  assert.equal(await pending(open(100, '198.51.100')), MOST)

  const made = node.invoices.length
  assert.equal(await pending(open(400)), 0)
  assert.equal(node.invoices.length, made, 'a full network costs the node no invoice')

  // A paid order makes room, and so does a quote that is over, whatever the node says of it.
  const [paid] = quotes
  assert.ok(paid)
  await pay(paid)
  await orders.reconcile(paid.paymentHash, 'stream')
  assert.equal(await pending(open(200)), 1)
  clock.advance(QUOTE_SECONDS * SECOND)
  assert.equal(await pending(open(300)), MOST)
})
