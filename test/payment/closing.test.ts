/** Closing an order whose invoice can never be paid, as an operator does. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { newId } from '../../src/lib/ids.ts'
import { UnknownInvoice } from '../../src/lightning/lightning.ts'
import type { Provisioning } from '../../src/payment/provisioning.ts'
import { type Closing, closeOrder, orderFacts } from '../../src/payment/repair.ts'
import { meanwhile } from '../support/meanwhile.ts'
import { aShop, QUOTE_SECONDS, SECOND, type Shop } from '../support/shop.ts'
import { unit } from '../support/unit.ts'

const poll = (shop: Shop, orderId: string) =>
  shop.another().poll(orderId, { key: null, isPrefetch: false })

/** A product that notes each order that it lets go of. */
const product: Provisioning = {
  newPublicId: () => newId('catch'),
  provision: () => [],
  capability: () => null,
  release: (orderId) => [
    {
      text: 'insert into meta (name, value) values ($1, $2)',
      values: [`released ${orderId}`, ''],
      expect: 1,
    },
  ],
}

const unknown = (): Promise<never> => Promise.reject(new UnknownInvoice())

const close = (
  { db, node: lightning, clock }: Pick<Shop, 'db' | 'node' | 'clock'>,
  orderId: string,
) => closeOrder({ db, lightning, clock, products: { catch: product } }, orderId)

suite('closing an order', () => {
  test('closing an order whose invoice the node has lost ends it, and lets go of what it reserved', async (t) => {
    const shop = await aShop(t)
    const { orderId } = await shop.quote()
    shop.node.replaced.lookupInvoice = unknown
    shop.clock.advance(QUOTE_SECONDS * SECOND)
    assert.deepEqual(await close(shop, orderId), { kind: 'closed', node: 'unknown' })
    assert.equal((await orderFacts(shop.db, orderId))?.state, 'dead')
    const released = await shop.db.read(
      'select name from meta where name = $1',
      `released ${orderId}`,
    )
    assert.equal(released.length, 1)
    assert.deepEqual(await poll(shop, orderId), { kind: 'order expired' })
    assert.deepEqual(await close(shop, orderId), { kind: 'not open', state: 'dead' })
  })

  for (const [who, nodeId] of Object.entries({
    'another node': '02'.padEnd(66, 'd'),
    'a node that does not say who it is': null,
  })) {
    test(`closing an order is refused where ${who} does not know the invoice`, async (t) => {
      const shop = await aShop(t)
      const { orderId } = await shop.quote()
      shop.clock.advance(QUOTE_SECONDS * SECOND)
      shop.node.replaced.lookupInvoice = unknown
      shop.node.replaced.info = async () => ({ network: 'regtest', synced: true, nodeId })
      assert.deepEqual(await close(shop, orderId), { kind: 'other node' })
      assert.equal((await orderFacts(shop.db, orderId))?.state, 'pending')
    })
  }

  test('closing an order that a node calls dead does not need the id of the node', async (t) => {
    const shop = await aShop(t)
    const { orderId } = await shop.quote()
    shop.clock.advance(QUOTE_SECONDS * SECOND)
    shop.node.replaced.info = async () => ({ network: 'regtest', synced: true, nodeId: null })
    assert.deepEqual(await close(shop, orderId), { kind: 'closed', node: 'dead' })
  })

  test('closing an order is refused while a preimage would still prove the payment', async (t) => {
    const shop = await aShop(t)
    const { orderId, expiresAt } = await shop.quote()
    shop.node.replaced.lookupInvoice = unknown
    assert.deepEqual(await close(shop, orderId), { kind: 'quote stands', until: expiresAt })
    assert.equal((await orderFacts(shop.db, orderId))?.state, 'pending')
  })

  for (const state of ['open', 'settled'] as const) {
    test(`closing an order is refused while the node says ${state}`, async (t) => {
      const shop = await aShop(t)
      const { orderId } = await shop.quote()
      shop.clock.advance(QUOTE_SECONDS * SECOND)
      shop.node.replaced.lookupInvoice = async () => ({ state })
      assert.deepEqual(await close(shop, orderId), { kind: 'node knows it', state })
      assert.equal((await orderFacts(shop.db, orderId))?.state, 'pending')
    })
  }

  test('closing an order is refused when the node cannot be asked', async (t) => {
    const shop = await aShop(t)
    const { orderId } = await shop.quote()
    shop.clock.advance(QUOTE_SECONDS * SECOND)
    shop.node.replaced.lookupInvoice = () => Promise.reject(new Error('down'))
    await assert.rejects(close(shop, orderId), /down/)
    assert.equal((await orderFacts(shop.db, orderId))?.state, 'pending')
  })

  test('closing an order that was settled meanwhile leaves it settled', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    shop.clock.advance(QUOTE_SECONDS * SECOND)
    shop.node.replaced.lookupInvoice = async () => {
      shop.node.replaced = {}
      await shop.orders.reconcile(quote.paymentHash, 'stream')
      return unknown()
    }
    assert.deepEqual(await close(shop, quote.orderId), { kind: 'not open', state: 'settled' })
  })

  test('closing an order of a product that is not sold any more ends it', async (t) => {
    const { db, node: lightning, clock, quote } = await aShop(t)
    const { orderId } = await quote()
    clock.advance(QUOTE_SECONDS * SECOND)
    const closed = await closeOrder({ db, lightning, clock, products: {} }, orderId)
    assert.deepEqual(closed, { kind: 'closed', node: 'dead' })
  })

  test('closing an unknown order says so', async (t) => {
    assert.deepEqual(await close(await aShop(t), newId('order')), { kind: 'order not found' })
  })

  test('closing an order that does not wait for its payment names its state, and asks no node', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    await shop.orders.reconcile(quote.paymentHash, 'stream')
    shop.clock.advance(QUOTE_SECONDS * SECOND)
    const asked = shop.node.lookups.length
    assert.deepEqual(await close(shop, quote.orderId), { kind: 'not open', state: 'settled' })
    assert.equal(shop.node.lookups.length, asked)
  })

  for (const column of ['bolt11', 'quote_expires_at', 'payment_hash']) {
    test(`closing an order without its ${column} is refused, and no node is asked`, async (t) => {
      const shop = await aShop(t)
      const { orderId } = await shop.quote()
      shop.clock.advance(QUOTE_SECONDS * SECOND)
      const text = `update purchase_order set ${column} = null`
      await shop.db.write(unit({ text, values: [] }))
      const asked = shop.node.lookups.length
      assert.deepEqual(await close(shop, orderId), { kind: 'not open', state: 'pending' })
      assert.equal(shop.node.lookups.length, asked)
    })
  }

  test('an order that is deleted, or is given more time, while it is closed is not closed', async (t) => {
    const MEANWHILE: Record<string, Closing> = {
      'delete from purchase_order': { kind: 'order not found' },
      'update purchase_order set quote_expires_at = quote_expires_at + 9000': {
        ...{ kind: 'not open', state: 'pending' },
      },
    }
    for (const [text, told] of Object.entries(MEANWHILE)) {
      const shop = await aShop(t)
      const { orderId } = await shop.quote()
      shop.clock.advance(QUOTE_SECONDS * SECOND)
      const db = meanwhile(shop.db, { text, values: [] })
      assert.deepEqual(await close({ ...shop, db }, orderId), told)
    }
  })

  test('an order can be closed from the moment at which its quote has ended', async (t) => {
    const shop = await aShop(t)
    const { orderId, expiresAt } = await shop.quote()
    shop.node.replaced.lookupInvoice = unknown
    shop.clock.advance(expiresAt - shop.clock.now() - 1)
    assert.deepEqual(await close(shop, orderId), { kind: 'quote stands', until: expiresAt })
    shop.clock.advance(1)
    assert.deepEqual(await close(shop, orderId), { kind: 'closed', node: 'unknown' })
  })

  /** What a closed order keeps of the node's word: whether it need not be asked again. */
  const WORDS: Record<string, [isFinal: boolean | null, kept: number]> = {
    'a node that is sure that it is dead': [true, 1],
    'a node that supposes that it is dead': [false, 0],
    'a node that has lost it': [null, 0],
  }
  for (const [who, [isFinal, kept]] of Object.entries(WORDS)) {
    test(`an order closed by the word of ${who} is ${kept ? 'asked about no more' : 'asked about again'}`, async (t) => {
      const shop = await aShop(t)
      const quote = await shop.quote()
      shop.clock.advance(QUOTE_SECONDS * SECOND)
      shop.node.replaced.lookupInvoice =
        isFinal === null ? unknown : async () => ({ state: 'dead', isFinal })
      assert.equal((await close(shop, quote.orderId)).kind, 'closed')
      assert.equal((await shop.order(quote))?.is_dead_final, kept)
    })
  }
})
