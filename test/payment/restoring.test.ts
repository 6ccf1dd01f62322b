import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Db } from '../../src/db/db.ts'
import { newId } from '../../src/lib/ids.ts'
import type { Provisioning } from '../../src/payment/provisioning.ts'
import { type Lost, noteLostRefund, restoreOrder } from '../../src/payment/restoring.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import { aShop, LIFE, SECOND, SECRET, type Shop } from '../support/shop.ts'
import { unit } from '../support/unit.ts'

const secrets = createSecrets([new Uint8Array(Buffer.from(SECRET, 'hex'))])

/** A product that notes each order it provisions, or refuses it. */
const aProduct = ({ refuses = false } = {}): { catch: Provisioning } => ({
  catch: {
    newPublicId: () => newId('catch'),
    provision: ({ publicId, orderId }) => [
      {
        text: 'insert into meta (name, value) values ($1, $2)',
        values: [publicId, orderId],
        expect: refuses ? 2 : 1,
      },
    ],
    capability: () => null,
  },
})

/** An order that was paid, and of which the store has no row. */
async function aLost(t: Parameters<typeof aShop>[0]): Promise<{ shop: Shop; lost: Lost }> {
  const shop = await aShop(t)
  const { paymentHash } = await shop.paid()
  await shop.db.write(unit({ text: 'delete from purchase_order', values: [] }))
  const lost: Lost = {
    paymentHash,
    product: 'catch',
    planId: 'spark',
    plan: { priceSats: 100, durationSeconds: LIFE / SECOND },
    memo: 'Mayfly CATCH spark',
    orderId: null,
    preimage: null,
  }
  return { shop, lost }
}

const deps = (shop: Shop, db = shop.db, products = aProduct()) => {
  const { node: lightning, clock } = shop
  return { db, lightning, clock, secrets, products }
}

/** The store, in which another process leaves the tombstone of an order right before the first write. */
function buriedMeanwhile(db: Db, paymentHash: string, ended: string): Db {
  let isBuried = false
  return {
    ...db,
    async write(asked) {
      if (!isBuried) {
        isBuried = true
        const text =
          'insert into order_tombstone (payment_hash, ended, ended_at) values ($1, $2, 1)'
        await db.write(unit({ text, values: [paymentHash, ended], expect: 1 }))
      }
      return db.write(asked)
    },
  }
}

const rows = async (shop: Shop) => ({
  orders: (await shop.db.read('select order_id from purchase_order')).length,
  provisioned: (await shop.provisioned()).length,
})

suite('restoring a lost order', () => {
  for (const ended of ['used', 'aged']) {
    test(`restoring a lost order restores nothing if a tombstone (${ended}) appears after the check`, async (t) => {
      const { shop, lost } = await aLost(t)
      const db = buriedMeanwhile(shop.db, lost.paymentHash, ended)
      assert.deepEqual(await restoreOrder(deps(shop, db), lost), { kind: 'of the past' })
      assert.deepEqual(await rows(shop), { orders: 0, provisioned: 0 })
    })

    test(`restoring a lost order notes no refund if a tombstone (${ended}) appears after the check`, async (t) => {
      const { shop, lost } = await aLost(t)
      const db = buriedMeanwhile(shop.db, lost.paymentHash, ended)
      assert.deepEqual(await noteLostRefund(deps(shop, db), lost), { kind: 'of the past' })
      assert.deepEqual(await rows(shop), { orders: 0, provisioned: 0 })
    })
  }

  test('restoring brings back an order whose quote died unpaid before the payment arrived', async (t) => {
    const { shop, lost } = await aLost(t)
    const db = buriedMeanwhile(shop.db, lost.paymentHash, 'dead')
    assert.equal((await restoreOrder(deps(shop, db), lost)).kind, 'restored')
    assert.deepEqual(await rows(shop), { orders: 1, provisioned: 1 })
  })

  test('restoring a lost order fails when the product refuses, and changes nothing', async (t) => {
    const { shop, lost } = await aLost(t)
    const refusing = deps(shop, shop.db, aProduct({ refuses: true }))
    await assert.rejects(restoreOrder(refusing, lost), { message: 'the product refused' })
    assert.deepEqual(await rows(shop), { orders: 0, provisioned: 0 })
    assert.equal((await restoreOrder(deps(shop), lost)).kind, 'restored')
  })
})
