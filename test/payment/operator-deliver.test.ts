import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { rfc3339 } from '../../src/lib/clock.ts'
import { newId } from '../../src/lib/ids.ts'
import { deliverOrder } from '../../src/payment/operator.ts'
import type { Provisioning } from '../../src/payment/provisioning.ts'
import { byId, many, OTHER_KEY, told } from '../support/orders.ts'
import { aShop, KEY, LIFE, SECOND, SECRET, type Shop, secretsOf } from '../support/shop.ts'
import { unit } from '../support/unit.ts'

const poll = (shop: Shop, orderId: string) =>
  shop.another().poll(orderId, { key: null, isPrefetch: false })

/** A product that notes each order it provisions, and each that it lets go of. */
function aProduct(): { catch: Provisioning } {
  const note = (name: string, value: string) => ({
    text: 'insert into meta (name, value) values ($1, $2)',
    values: [name, value],
    expect: 1,
  })
  return {
    catch: {
      newPublicId: () => newId('catch'),
      provision: ({ publicId, orderId }) => [note(publicId, orderId)],
      capability: () => null,
      release: (orderId) => [note(`released ${orderId}`, '')],
    },
  }
}

function deliver(shop: Shop, orderId: string, secrets = secretsOf(SECRET)) {
  return deliverOrder(
    { db: shop.db, secrets, clock: shop.clock, products: aProduct() },
    byId(orderId),
  )
}

async function anUnfulfilled(t: Parameters<typeof aShop>[0]) {
  const shop = await aShop(t, { isSoldOut: true })
  const quote = await shop.paidAndSeen()
  assert.equal((await shop.order(quote))?.state, 'paid_unfulfilled')
  return { shop, orderId: quote.orderId, quote }
}

suite('delivering what is owed', () => {
  test('delivering what is owed provisions it with its whole life, and its buyer collects it once', async (t) => {
    const { shop, orderId } = await anUnfulfilled(t)
    shop.clock.advance(3 * SECOND)
    const repaired = await deliver(shop, orderId)
    assert.equal(repaired.expiresAt, shop.clock.now() + LIFE)
    assert.deepEqual(await shop.provisioned(), [repaired.publicId])
    const outcome = await poll(shop, orderId)
    assert.ok(outcome.kind === 'delivered')
    assert.equal(JSON.parse(outcome.body).resource.publicId, repaired.publicId)
    assert.deepEqual(await poll(shop, orderId), { kind: 'already delivered' })
  })

  test('delivering what is owed ten times at once provisions once', async (t) => {
    const { shop, orderId } = await anUnfulfilled(t)
    const outcomes = await many(10, () => told(deliver(shop, orderId)))
    assert.equal(outcomes.filter((outcome) => typeof outcome !== 'string').length, 1)
    assert.equal((await shop.provisioned()).length, 1)
  })

  test('what is owed and is refused again is still owed', async (t) => {
    const { shop, orderId } = await anUnfulfilled(t)
    const products = aProduct()
    const before = await shop.order({ orderId })
    const never = { text: `delete from meta where name = 'none'`, values: [], expect: 1 }
    const { provision } = products.catch
    products.catch.provision = (grant) => [...provision(grant), never]
    const deps = { db: shop.db, secrets: secretsOf(SECRET), clock: shop.clock, products }
    assert.match(
      String(await told(deliverOrder(deps, byId(orderId)))),
      /cannot be provisioned: the product refused\. You still owe it/,
    )
    assert.deepEqual(await shop.order({ orderId }), before)
    assert.deepEqual(await shop.provisioned(), [])
  })

  test('delivering what is owed is refused under another secret, which could not deliver it', async (t) => {
    const { shop, orderId } = await anUnfulfilled(t)
    await assert.rejects(deliver(shop, orderId, secretsOf('33'.repeat(32))), {
      kind: 'secret',
      message: /was made under another secret/,
    })
  })

  test('an order that waits for its payment or for its buyer is left alone', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    const { orderId } = quote
    await assert.rejects(deliver(shop, orderId), /is pending: there is nothing to deliver/)
    await shop.orders.reconcile(quote.paymentHash, 'stream')
    const before = await shop.order(quote)
    for (const secrets of [secretsOf(SECRET), secretsOf('33'.repeat(32))]) {
      await assert.rejects(deliver(shop, orderId, secrets), /waits for its buyer/)
    }
    assert.deepEqual(await shop.order(quote), before)
    assert.equal((await poll(shop, orderId)).kind, 'delivered')
    const at = rfc3339(shop.clock.now())
    await assert.rejects(deliver(shop, orderId), new RegExp(`was delivered at ${at}, and is never`))
  })
})

suite('what an operator is told of an order', () => {
  test('delivering an unknown order says so', async (t) => {
    await assert.rejects(deliver(await aShop(t), 'order_none'), { kind: 'unknown' })
  })

  test('a provisioned order names what it sold, and an extension that is provisioned what it extended', async (t) => {
    const { shop, orderId, quote } = await anUnfulfilled(t)
    const sold = await deliver(shop, orderId)
    const publicId = (await shop.order(quote))?.public_id
    const expiresAt = shop.clock.now() + LIFE
    const order = quote.paymentHash
    assert.deepEqual(sold, { order, publicId, isExtended: false, isRestored: false, expiresAt })

    const owed = await anUnfulfilled(t)
    const text = `update purchase_order set extends_id = 'catch_0'`
    await owed.shop.db.write(unit({ text, values: [] }))
    const { db, clock } = owed.shop
    const { catch: product } = aProduct()
    const extend: Provisioning['extend'] = async (_db, { now }) => ({
      ...{ expiresAt: now + SECOND, statements: [] },
    })
    const extended = await deliverOrder(
      { db, clock, secrets: secretsOf(SECRET), products: { catch: { ...product, extend } } },
      byId(owed.orderId),
    )
    assert.deepEqual(extended, {
      ...{
        order: owed.quote.paymentHash,
        publicId: 'catch_0',
        isExtended: true,
        isRestored: false,
      },
      expiresAt: clock.now() + SECOND,
    })
  })

  test('delivering an order leaves the one beside it as it is', async (t) => {
    const shop = await aShop(t, { isSoldOut: true })
    const owed = [await shop.paid(KEY), await shop.paid(OTHER_KEY)] as const
    for (const { paymentHash } of owed) await shop.orders.reconcile(paymentHash, 'stream')
    const paidAt = shop.clock.now()
    const stands = await shop.order(owed[1])
    shop.clock.advance(SECOND)
    await deliver(shop, owed[0].orderId)
    const row = await shop.order(owed[0])
    assert.deepEqual([row?.settled_at, row?.unfulfilled_at], [shop.clock.now(), paidAt])
    assert.deepEqual(await shop.order(owed[1]), stands)
  })
})
