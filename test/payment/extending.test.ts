/** Orders that extend a capability: in one unit, or, if it cannot be extended any more, in its place. */
import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { StoreError } from '../../src/db/db.ts'
import {
  extendedEnd,
  extendedLimit,
  MAX_LIFE_SECONDS,
  type Provisioning,
} from '../../src/payment/provisioning.ts'
import type { Quote } from '../../src/payment/quote.ts'
import { delivered, events, OTHER_KEY, plainPoll } from '../support/orders.ts'
import {
  aName,
  anOffer,
  aRequest,
  aShop,
  DAY,
  LIFE,
  pendingQuote,
  preimageOf,
  SECOND,
  type Shop,
} from '../support/shop.ts'

type Extend = NonNullable<Provisioning['extend']>

const MAX_TRIES = 100

/** Writes into the capability's row that it was extended. */
const extending: Extend = async (_db, { publicId, now }) => ({
  expiresAt: now + 2 * LIFE,
  statements: [
    {
      text: 'update meta set value = $2 where name = $1',
      values: [publicId, 'extended'],
      expect: 1,
    },
  ],
})

/** The first of its statements is refused, as if somebody else had extended the capability meanwhile. */
const overtaken: Extend = async (_db, { now }) => ({
  expiresAt: now + 2 * LIFE,
  statements: [{ text: `delete from meta where name = 'nothing'`, values: [], expect: 1 }],
})

/** A shop that has sold a capability, and a paid order that extends it. */
async function anExtension(t: TestContext, extend?: Extend) {
  const told: string[] = []
  const shop = await aShop(t, {
    onExtended: (publicId) => void told.push(publicId),
    ...(extend === undefined ? {} : { extend }),
  })
  const bought = await shop.paid()
  const { publicId } = delivered(await shop.orders.poll(bought.orderId, plainPoll))
  const request = aRequest({ extendsId: publicId })
  const quote = pendingQuote(await shop.orders.open(aName(OTHER_KEY), request, anOffer()))
  await shop.pay(quote)
  shop.clock.advance(DAY)
  const repeat = (credential?: 'verified') =>
    shop.repeat({ key: OTHER_KEY, request, ...(credential ? { credential } : {}) })
  const learn = () => shop.orders.reconcile(quote.paymentHash, 'stream')
  return { shop, told, publicId, request, quote, repeat, learn }
}

const columns = async (shop: Shop, quote: Quote) => {
  const { state, public_id, settled_at, expires_at, extends_id } = (await shop.order(quote)) ?? {}
  return { state, public_id, settled_at, expires_at, extends_id }
}

const sales = async (shop: Shop): Promise<number> =>
  Number((await shop.db.read('select count(*) as n from sale'))[0]?.n)

suite('an order that extends a capability', () => {
  test('an extension changes its capability, provisions nothing, and is one sale', async (t) => {
    const { shop, told, publicId, quote, learn } = await anExtension(t, extending)
    const before = await sales(shop)
    await learn()
    const now = shop.clock.now()
    assert.deepEqual(await columns(shop, quote), {
      state: 'settled',
      public_id: null,
      extends_id: publicId,
      settled_at: now,
      expires_at: now + 2 * LIFE,
    })
    assert.deepEqual(await shop.provisioned(), [publicId])
    const [row] = await shop.db.read('select value from meta where name = $1', publicId)
    assert.equal(row?.value, 'extended')
    assert.equal(await sales(shop), before + 1)
    assert.deepEqual(told, [publicId])
    assert.equal(events(shop, 'order.settled').at(-1)?.renewal, 'extended')
  })

  test('a purchase of a new capability is logged as no renewal, and told to nobody', async (t) => {
    const { shop, told } = await anExtension(t, extending)
    const [bought] = events(shop, 'order.settled')
    assert.equal(bought && 'renewal' in bought, false)
    assert.deepEqual(told, [])
  })

  const REPLACED: Record<string, Extend | undefined> = {
    'has ended': async () => null,
    'is of a product that extends nothing': undefined,
  }
  for (const [what, extend] of Object.entries(REPLACED)) {
    test(`an extension whose capability ${what} sells a new one, to proof of the payment alone`, async (t) => {
      const { shop, told, publicId, quote, repeat, learn } = await anExtension(t, extend)
      await learn()
      const row = await columns(shop, quote)
      assert.equal(row.state, 'settled')
      assert.notEqual(row.public_id, null)
      assert.deepEqual(
        (await shop.provisioned()).toSorted(),
        [publicId, String(row.public_id)].toSorted(),
      )
      assert.deepEqual(told, [])
      assert.equal(events(shop, 'order.settled').at(-1)?.renewal, 'replaced')
      assert.deepEqual(await repeat(), { kind: 'proof of payment required' })
      const preimage = await preimageOf(shop.db, quote.paymentHash)
      for (const ask of [plainPoll, { ...plainPoll, key: OTHER_KEY }, { ...plainPoll, preimage }]) {
        const unproven = await shop.orders.poll(quote.orderId, ask)
        assert.deepEqual(unproven, { kind: 'proof of payment required' })
      }
      const { publicId: handed } = delivered(await repeat('verified'))
      assert.equal(handed, row.public_id)
    })
  }

  test('an extension that others overtook is tried again, by what the capability is then', async (t) => {
    let tries = 0
    const { shop, publicId, quote, learn } = await anExtension(t, (db, grant) =>
      ++tries < 3 ? overtaken(db, grant) : extending(db, grant),
    )
    await learn()
    assert.equal(tries, 3)
    assert.equal((await columns(shop, quote)).state, 'settled')
    assert.deepEqual(await shop.provisioned(), [publicId])
  })

  test('an extension that is overtaken every time stays open, and says nothing of the order', async (t) => {
    let tries = 0
    const { shop, quote, learn } = await anExtension(t, (db, grant) => {
      tries++
      return overtaken(db, grant)
    })
    await assert.rejects(
      learn(),
      new StoreError('a capability changed each time that it was to be extended'),
    )
    assert.equal(tries, MAX_TRIES)
    assert.equal((await columns(shop, quote)).state, 'pending')
  })

  test('an extension that its product cannot compute is owed, with its reason', async (t) => {
    const { shop, quote, learn } = await anExtension(t, async () => {
      throw new Error('the plan is broken')
    })
    await learn()
    assert.equal((await columns(shop, quote)).state, 'paid_unfulfilled')
    assert.equal(events(shop, 'order.paid_unfulfilled')[0]?.reason, 'the plan is broken')
  })

  test('an extension whose capability the store could not read stays open', async (t) => {
    const { shop, quote, learn } = await anExtension(t, async () => {
      throw new StoreError('the store is away')
    })
    await assert.rejects(learn(), StoreError)
    assert.equal((await columns(shop, quote)).state, 'pending')
  })
})

suite('what an extension may add', () => {
  const NOW = Date.UTC(2026, 0, 2)
  const plan = { priceSats: 1, durationSeconds: 3600 }
  const longest = NOW + MAX_LIFE_SECONDS * SECOND

  test('a capability lasts as much longer as its plan says, up to ten years from now', () => {
    assert.equal(extendedEnd(NOW, plan, NOW), NOW + 3600 * SECOND)
    assert.equal(extendedEnd(NOW + DAY, plan, NOW), NOW + DAY + 3600 * SECOND)
    assert.equal(extendedEnd(longest - 3600 * SECOND, plan, NOW), longest)
    assert.equal(extendedEnd(longest - 3600 * SECOND + 1, plan, NOW), null)
    assert.equal(MAX_LIFE_SECONDS, 315_360_000)
  })

  test('a plan that does not say how long it lasts extends nothing', () => {
    for (const durationSeconds of [undefined, 'a week', Number.NaN, 2 ** 53] as number[]) {
      const broken = { priceSats: 1, durationSeconds }
      assert.throws(() => extendedEnd(NOW, broken, NOW), /does not say how long it lasts/)
    }
  })

  test('a limit grows by the limit of each plan, as far as numbers are exact', () => {
    assert.equal(extendedLimit(100, 25), 125)
    assert.equal(extendedLimit(100, 25, 4), 200)
    assert.equal(extendedLimit(Number.MAX_SAFE_INTEGER - 1, 1), Number.MAX_SAFE_INTEGER)
    assert.equal(extendedLimit(Number.MAX_SAFE_INTEGER, 1), null)
    assert.equal(extendedLimit(1, Number.MAX_SAFE_INTEGER, 2), null)
  })
})
