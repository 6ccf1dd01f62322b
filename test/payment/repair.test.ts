import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { newId } from '../../src/lib/ids.ts'
import { UnknownInvoice } from '../../src/lightning/lightning.ts'
import type { Provisioning } from '../../src/payment/provisioning.ts'
import {
  closeOrder,
  isOrderName,
  noteRefund,
  orderFacts,
  orderIdOf,
  repairOrder,
} from '../../src/payment/repair.ts'
import { purgeOrders } from '../../src/payment/tombstones.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import { overBy } from '../support/deletion.ts'
import { OTHER_KEY } from '../support/orders.ts'
import { aShop, KEY, LIFE, QUOTE_SECONDS, SECOND, SECRET, type Shop } from '../support/shop.ts'
import { unit } from '../support/unit.ts'

const secretOf = (hex: string) => createSecrets([new Uint8Array(Buffer.from(hex, 'hex'))])
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

const unknown = (): Promise<never> => Promise.reject(new UnknownInvoice())

function close(shop: Shop, orderId: string) {
  const { db, node: lightning, clock } = shop
  return closeOrder({ db, lightning, clock, products: aProduct() }, orderId)
}

function repair(shop: Shop, orderId: string, secrets = secretOf(SECRET)) {
  return repairOrder({ db: shop.db, secrets, clock: shop.clock, products: aProduct() }, orderId)
}

function refund(shop: Shop, orderId: string) {
  return noteRefund({ db: shop.db, clock: shop.clock, products: aProduct() }, orderId)
}

async function anUnfulfilled(t: Parameters<typeof aShop>[0]) {
  const shop = await aShop(t, { isSoldOut: true })
  const quote = await shop.paid()
  await shop.orders.reconcile(quote.paymentHash, 'stream')
  assert.equal((await shop.order(quote))?.state, 'paid_unfulfilled')
  return { shop, orderId: quote.orderId, quote }
}

suite('repairing an order', () => {
  test('repairing an order provisions it with its whole life, and its buyer collects it once', async (t) => {
    const { shop, orderId } = await anUnfulfilled(t)
    shop.clock.advance(3 * SECOND)
    const repaired = await repair(shop, orderId)
    assert.ok(repaired.kind === 'repaired')
    assert.equal(repaired.expiresAt, shop.clock.now() + LIFE)
    assert.deepEqual(await shop.provisioned(), [repaired.publicId])
    const outcome = await poll(shop, orderId)
    assert.ok(outcome.kind === 'delivered')
    assert.equal(JSON.parse(outcome.body).resource.publicId, repaired.publicId)
    assert.deepEqual(await poll(shop, orderId), { kind: 'already delivered' })
  })

  test('repairing an order ten times at once provisions once', async (t) => {
    const { shop, orderId } = await anUnfulfilled(t)
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => repair(shop, orderId)))
    assert.equal(outcomes.filter(({ kind }) => kind === 'repaired').length, 1)
    assert.equal((await shop.provisioned()).length, 1)
  })

  test('repairing an order that is refused again changes nothing', async (t) => {
    const { shop, orderId } = await anUnfulfilled(t)
    const products = aProduct()
    const before = await orderFacts(shop.db, orderId)
    const never = { text: `delete from meta where name = 'none'`, values: [], expect: 1 }
    const { provision } = products.catch
    products.catch.provision = (grant) => [...provision(grant), never]
    const deps = { db: shop.db, secrets: secretOf(SECRET), clock: shop.clock, products }
    assert.deepEqual(await repairOrder(deps, orderId), {
      kind: 'refused',
      reason: 'the product refused',
    })
    assert.deepEqual(await orderFacts(shop.db, orderId), before)
    assert.deepEqual(await shop.provisioned(), [])
  })

  test('repairing an order is refused under another secret, which could not deliver it', async (t) => {
    const { shop, orderId } = await anUnfulfilled(t)
    assert.deepEqual(await repair(shop, orderId, secretOf('33'.repeat(32))), {
      kind: 'other secret',
    })
  })

  test('repairing an order that waits for its payment, or has been settled, is refused', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    assert.deepEqual(await repair(shop, quote.orderId), {
      kind: 'not unfulfilled',
      state: 'pending',
    })
    await shop.orders.reconcile(quote.paymentHash, 'stream')
    for (const secrets of [secretOf(SECRET), secretOf('33'.repeat(32))]) {
      assert.deepEqual(await repair(shop, quote.orderId, secrets), {
        ...{ kind: 'not unfulfilled', state: 'settled' },
      })
    }
  })
})

suite('noting a refund', () => {
  test('noting a refund ends the order for its buyer, who is never asked to pay again', async (t) => {
    const { shop, orderId } = await anUnfulfilled(t)
    assert.deepEqual(await refund(shop, orderId), { kind: 'refunded' })
    const facts = await orderFacts(shop.db, orderId)
    assert.deepEqual([facts?.state, facts?.sealed_at], ['refunded', shop.clock.now()])
    assert.deepEqual(await poll(shop, orderId), { kind: 'order refunded' })
    for (const credential of ['none', 'verified', 'invalid'] as const) {
      assert.deepEqual(await shop.repeat({ credential }), { kind: 'order refunded' })
    }
    assert.equal(shop.node.invoices.length, 1)
  })

  test('noting a refund lets go of what the order had reserved', async (t) => {
    const { shop, orderId } = await anUnfulfilled(t)
    await refund(shop, orderId)
    const [released] = await shop.db.read('select name from meta where value = $1', '')
    assert.equal(released?.name, `released ${orderId}`)
  })

  test('noting a refund and repairing at once do only one of the two', async (t) => {
    const { shop, orderId } = await anUnfulfilled(t)
    const [refunded, repaired] = await Promise.all([refund(shop, orderId), repair(shop, orderId)])
    const isRefunded = refunded.kind === 'refunded'
    assert.deepEqual(isRefunded ? repaired : refunded, {
      kind: 'not unfulfilled',
      state: isRefunded ? 'refunded' : 'settled',
    })
    assert.equal((await shop.provisioned()).length, isRefunded ? 0 : 1)
  })

  test('noting a refund is refused a second time, and for an order that nobody owes', async (t) => {
    const { shop, orderId } = await anUnfulfilled(t)
    await refund(shop, orderId)
    const again = { kind: 'not unfulfilled', state: 'refunded' }
    assert.deepEqual(await refund(shop, orderId), again)
    assert.deepEqual(await repair(shop, orderId), again)
    const { orderId: open } = await shop.quote('another-key-00')
    assert.deepEqual(await refund(shop, open), { kind: 'not unfulfilled', state: 'pending' })
    assert.deepEqual(await refund(shop, newId('order')), { kind: 'order not found' })
  })

  test('a refund stays noted when old orders are forgotten', async (t) => {
    const { shop, orderId } = await anUnfulfilled(t)
    await refund(shop, orderId)
    const later = overBy(shop.clock.now() + LIFE * 100)
    await shop.db.write(unit(...purgeOrders(later, later)))
    assert.equal((await orderFacts(shop.db, orderId))?.state, 'refunded')
  })
})

suite('what an operator is told of an order', () => {
  test('repairing an unknown order, or one that nobody is owed, says so', async (t) => {
    const shop = await aShop(t)
    const { orderId } = await shop.quote()
    assert.deepEqual(await repair(shop, 'order_none'), { kind: 'order not found' })
    assert.deepEqual(await repair(shop, orderId), { kind: 'not unfulfilled', state: 'pending' })
    assert.deepEqual(await refund(shop, 'order_none'), { kind: 'order not found' })
  })

  test('a repaired order names what it sold, and a repaired extension what it extended', async (t) => {
    const { shop, orderId, quote } = await anUnfulfilled(t)
    const sold = await repair(shop, orderId)
    const publicId = (await shop.order(quote))?.public_id
    const expiresAt = shop.clock.now() + LIFE
    assert.deepEqual(sold, { kind: 'repaired', publicId, isExtended: false, expiresAt })

    const owed = await anUnfulfilled(t)
    const text = `update purchase_order set extends_id = 'catch_0'`
    await owed.shop.db.write(unit({ text, values: [] }))
    const { db, clock } = owed.shop
    const { catch: product } = aProduct()
    const extend: Provisioning['extend'] = async (_db, { now }) => ({
      ...{ expiresAt: now + SECOND, statements: [] },
    })
    const extended = await repairOrder(
      { db, clock, secrets: secretOf(SECRET), products: { catch: { ...product, extend } } },
      owed.orderId,
    )
    assert.deepEqual(extended, {
      ...{ kind: 'repaired', publicId: 'catch_0', isExtended: true },
      expiresAt: clock.now() + SECOND,
    })
  })

  test('closing, repairing or refunding an order leaves the one beside it as it is', async (t) => {
    const shop = await aShop(t, { isSoldOut: true })
    const owed = [await shop.paid(KEY), await shop.paid(OTHER_KEY)] as const
    for (const { paymentHash } of owed) await shop.orders.reconcile(paymentHash, 'stream')
    const paidAt = shop.clock.now()
    const stands = await shop.order(owed[1])
    shop.clock.advance(SECOND)
    assert.equal((await repair(shop, owed[0].orderId)).kind, 'repaired')
    const row = await shop.order(owed[0])
    assert.deepEqual([row?.settled_at, row?.unfulfilled_at], [shop.clock.now(), paidAt])
    assert.deepEqual(await shop.order(owed[1]), stands)

    const [third, fourth] = [await shop.paid('third-key-0001'), await shop.quote('fourth-key-0001')]
    await shop.orders.reconcile(third.paymentHash, 'stream')
    assert.equal((await refund(shop, third.orderId)).kind, 'refunded')
    assert.deepEqual(await shop.order(owed[1]), stands)

    const open = await shop.quote('fifth-key-00001')
    const waits = await shop.order(open)
    shop.clock.advance(QUOTE_SECONDS * SECOND)
    shop.node.replaced.lookupInvoice = unknown
    assert.equal((await close(shop, fourth.orderId)).kind, 'closed')
    assert.deepEqual(await shop.order(open), waits)
  })

  test('an order is named by its payment hash or its id, and by nothing else', async (t) => {
    const shop = await aShop(t)
    const { orderId, paymentHash } = await shop.quote()
    for (const name of [orderId, paymentHash]) {
      assert.equal(isOrderName(name), true)
      assert.equal(await orderIdOf(shop.db, name), orderId)
    }
    for (const name of [`${paymentHash}0`, `x${paymentHash}`, paymentHash.toUpperCase(), 'abc'])
      assert.equal(isOrderName(name), false, name)
    assert.equal(await orderIdOf(shop.db, 'ff'.repeat(32)), null)
  })
})
