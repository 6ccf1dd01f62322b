import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Statement } from '../../src/db/db.ts'
import { isId, newId } from '../../src/lib/ids.ts'
import {
  deliverOrder,
  type Lost,
  refundLost,
  refundOrder,
  restoreOrder,
} from '../../src/payment/operator.ts'
import { findSale } from '../../src/payment/sales.ts'
import { purgeOrders } from '../../src/payment/tombstones.ts'
import { meanwhile } from '../support/meanwhile.ts'
import { aProduct, deps } from '../support/operator.ts'
import { many, told } from '../support/orders.ts'
import { aName, aRequest, aShop, LIFE, preimageOf, SECOND, type Shop } from '../support/shop.ts'
import { unit } from '../support/unit.ts'

const OF_THE_PAST = /It was delivered or expired long ago, and is never delivered twice/

/** An order that was paid, and of which the store has no row. */
async function aLost(t: Parameters<typeof aShop>[0]): Promise<{ shop: Shop; lost: Lost }> {
  const shop = await aShop(t)
  const { paymentHash } = await shop.paid()
  const tables = ['purchase_order', 'order_name']
  await shop.db.write(
    unit(...tables.map((table) => ({ text: `delete from ${table}`, values: [] }))),
  )
  return { shop, lost: { ...LOST, paymentHash } }
}

/** What an operator knows of a lost order. */
const LOST: Lost = {
  paymentHash: '',
  product: 'catch',
  planId: 'spark',
  plan: { priceSats: 100, durationSeconds: LIFE / SECOND },
  orderId: null,
  preimage: null,
}

const tombstone = (paymentHash: string, ended: string): Statement => ({
  text: 'insert into order_tombstone (payment_hash, ended, ended_at) values ($1, $2, 1)',
  values: [paymentHash, ended],
  expect: 1,
})

const rows = async (shop: Shop) => ({
  orders: (await shop.db.read('select order_id from purchase_order')).length,
  provisioned: (await shop.provisioned()).length,
})

const refund = (deps: Parameters<typeof refundLost>[0], lost: Lost) =>
  refundLost(deps, lost, 'gone')

suite('restoring a lost order', () => {
  for (const act of [restoreOrder, refund]) {
    test(`a tombstone that appears after the check keeps a lost order from ${act === refund ? 'being noted as refunded' : 'being restored'}`, async (t) => {
      for (const ended of ['used', 'aged']) {
        const { shop, lost } = await aLost(t)
        const db = meanwhile(shop.db, tombstone(lost.paymentHash, ended))
        await assert.rejects(act(deps({ ...shop, db }), lost), OF_THE_PAST)
        assert.deepEqual(await rows(shop), { orders: 0, provisioned: 0 })
      }
    })
  }

  test('a lost order that the product refuses is owed from then on, and delivered or refunded as any other', async (t) => {
    for (const finish of [deliverOrder, refundOrder]) {
      const { shop, lost } = await aLost(t)
      const refusing = deps(shop, aProduct({ refuses: true }))
      await assert.rejects(restoreOrder(refusing, lost), /the product refused\. You still owe it/)
      assert.deepEqual(await rows(shop), { orders: 1, provisioned: 0 })
      const ref = { by: 'payment_hash', value: lost.paymentHash } as const
      await assert.rejects(
        restoreOrder(deps(shop), lost),
        /is in this store and is paid_unfulfilled/,
      )
      await finish(deps(shop), ref, { reason: 'gone' })
      const isRefund = finish === refundOrder
      assert.deepEqual(await rows(shop), { orders: 1, provisioned: isRefund ? 0 : 1 })
    }
  })
})

test('whoever shows the preimage of a restored order is asked for no payment before the order is over', async (t) => {
  for (const refuses of [false, true]) {
    const { shop, lost } = await aLost(t)
    const preimage = await preimageOf(shop.db, lost.paymentHash)
    const asked = async () =>
      (await shop.orders.decide({ ...ASK, credential: { kind: 'none' }, preimage })).kind
    assert.equal(await asked(), 'lost')
    // Under an id that its buyer does not know.
    const restoring = restoreOrder(deps(shop, aProduct({ refuses })), lost)
    await restoring.catch(() => assert.ok(refuses))
    assert.equal(await asked(), 'lost')
    const ref = { by: 'payment_hash', value: lost.paymentHash } as const
    await refundOrder(deps(shop), ref, { reason: 'gone', isSettled: true })
    assert.equal(await asked(), 'new', 'paid back')
  }
})

const ASK = { by: aName(), request: aRequest() }

suite('what restoring a lost order needs', () => {
  const both = [restoreOrder, refund]

  test('an order that is restored has its sale, its life from now on, and the id that it had', async (t) => {
    const { shop, lost } = await aLost(t)
    shop.clock.advance(LIFE)
    const orderId = newId('order')
    const restored = await restoreOrder(deps(shop), { ...lost, orderId })
    const row = await shop.order({ orderId })
    const now = shop.clock.now()
    assert.deepEqual(restored, {
      order: lost.paymentHash,
      publicId: row?.public_id,
      isExtended: false,
      isRestored: true,
      expiresAt: now + LIFE,
    })
    assert.deepEqual(
      [row?.state, row?.settled_by, row?.restored_at, row?.contested, row?.amount_sats],
      ['settled', 'lookup', now, 1, 100],
    )
    assert.deepEqual(await shop.provisioned(), [row?.public_id])
  })

  test('an order that is in the store is neither restored nor noted as refunded, by its payment or its id', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    const { paymentHash, orderId } = quote
    for (const act of both) {
      for (const named of [{ paymentHash }, { paymentHash: 'ff'.repeat(32), orderId }]) {
        const lost: Lost = { ...LOST, ...named }
        await assert.rejects(act(deps(shop), lost), /is in this store and is pending/)
      }
    }
    assert.deepEqual(await rows(shop), { orders: 1, provisioned: 0 })
  })

  test('ten operators at once restore an order once, under a new id where none is named, and with one sale', async (t) => {
    const { shop, lost } = await aLost(t)
    const all = await many(10, () => told(restoreOrder(deps(shop), lost)))
    assert.equal(all.filter((one) => /is in this store/.test(String(one))).length, 9)
    const [row] = await shop.db.read('select order_id from purchase_order')
    assert.equal(isId('order', String(row?.order_id)), true)
    assert.equal((await findSale(shop.db, lost.paymentHash))?.network, 'regtest')
    assert.deepEqual(await rows(shop), { orders: 1, provisioned: 1 })
  })

  test('an order that was restored after its death is not restored again once it is deleted', async (t) => {
    const { shop, lost } = await aLost(t)
    await shop.db.write(unit(tombstone(lost.paymentHash, 'dead')))
    await restoreOrder(deps(shop), lost)
    shop.clock.advance(LIFE + SECOND)
    const now = shop.clock.now()
    await shop.db.write(unit(...purgeOrders(now, now)))
    assert.deepEqual(await shop.db.read('select ended, ended_at from order_tombstone'), [
      { ended: 'aged', ended_at: now },
    ])
    for (const act of both) await assert.rejects(act(deps(shop), lost), OF_THE_PAST)
    assert.equal((await shop.provisioned()).length, 1)
  })

  test('restoring an order, or noting its refund, asks for no tombstone but its own, and changes no other order', async (t) => {
    for (const act of both) {
      const { shop, lost } = await aLost(t)
      const other = await shop.quote()
      await shop.db.write(unit(tombstone('ee'.repeat(32), 'used')))
      await shop.db.write(unit(tombstone(lost.paymentHash, 'dead')))
      const before = await shop.order(other)
      shop.clock.advance(SECOND)
      await act(deps(shop), lost)
      assert.deepEqual(await shop.order(other), before)
    }
  })
})
