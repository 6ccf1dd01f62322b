import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { rfc3339 } from '../../src/lib/clock.ts'
import { deliverOrder } from '../../src/payment/operator.ts'
import type { Provisioning } from '../../src/payment/provisioning.ts'
import { purgeOrders } from '../../src/payment/tombstones.ts'
import { aProduct, deps } from '../support/operator.ts'
import { byId, many, told } from '../support/orders.ts'
import { aShop, LIFE, SECOND, SECRET, type Shop, secretsOf } from '../support/shop.ts'
import { unit } from '../support/unit.ts'

const poll = (shop: Shop, orderId: string) =>
  shop.another().poll(orderId, { key: null, isPrefetch: false })

const deliver = (shop: Shop, orderId: string, secrets = secretsOf(SECRET)) =>
  deliverOrder(deps(shop, aProduct(), secrets), byId(orderId))

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
    const before = await shop.order({ orderId })
    const refusing = deps(shop, aProduct({ refuses: true }))
    assert.match(
      String(await told(deliverOrder(refusing, byId(orderId)))),
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
  test('delivering an order that is unknown, or was deleted after its end, says so', async (t) => {
    const shop = await aShop(t)
    await assert.rejects(deliver(shop, 'order_none'), { kind: 'unknown' })
    const { paymentHash } = await shop.paidAndSeen()
    shop.clock.advance(LIFE + SECOND)
    const now = shop.clock.now()
    await shop.db.write(unit(...purgeOrders(now, now)))
    const byHash = { by: 'payment_hash', value: paymentHash } as const
    await assert.rejects(deliverOrder(deps(shop), byHash), /was deleted after its end/)
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
    const { clock } = owed.shop
    const { catch: product = assert.fail() } = aProduct()
    const extend: Provisioning['extend'] = async (_db, { now }) => ({
      expiresAt: now + SECOND,
      statements: [],
    })
    const extended = await deliverOrder(
      deps(owed.shop, { catch: { ...product, extend } }),
      byId(owed.orderId),
    )
    assert.deepEqual(extended, {
      order: owed.quote.paymentHash,
      publicId: 'catch_0',
      isExtended: true,
      isRestored: false,
      expiresAt: clock.now() + SECOND,
    })
  })
})
