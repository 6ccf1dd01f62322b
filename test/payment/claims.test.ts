/** Who may have the capability of an order: every claim on every order, as one table. */
import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import type { Db } from '../../src/db/db.ts'
import { type Claim, createClaims, mayRepeat, reachFor } from '../../src/payment/claims.ts'
import { CONTESTED, createOrderStore, type OrderRow } from '../../src/payment/store.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import { aName, aShop, CLIENT, KEY, SECRET } from '../support/shop.ts'
import { unit } from '../support/unit.ts'

const NOW = Date.UTC(2026, 0, 2, 3, 4)
const MINUTE = 60_000
const { no, afterPayment, beforePayment, credentialOnly } = CONTESTED
const NEVER = -1

/** How contested an order may be: if the opener of the order claims it, and if anybody else does. */
const REACH: Record<Claim['by'], [opener: number, other: number]> = {
  credential: [credentialOnly, credentialOnly],
  proof: [beforePayment, beforePayment],
  'strong key': [beforePayment, beforePayment],
  'weak key and id': [afterPayment, no],
  id: [afterPayment, no],
  'weak key': [no, no],
  'weak alias': [NEVER, NEVER],
}
const CLAIMS = Object.keys(REACH) as Claim['by'][]
const PROOFS: Claim['by'][] = ['credential', 'proof']
const KEYS_OF_THEIR_OWN: Claim['by'][] = [...PROOFS, 'strong key']

/** A delivered order, as far as claims look at it. */
const order = (facts: Partial<OrderRow> = {}): OrderRow =>
  ({
    ...{ contested: no, seed: new Uint8Array(32), sealed_at: null, expires_at: NOW + 60 * MINUTE },
    ...{ delivered_at: NOW - MINUTE, extends_id: null, public_id: 'catch_1' },
    ...facts,
  }) as OrderRow

suite('a claim', () => {
  for (const by of CLAIMS) {
    test(`a claim by ${by} reaches as far as the order may be contested for it, and no further`, () => {
      const [opener, other] = REACH[by]
      assert.equal(reachFor(order(), { by, isOpener: true }), opener)
      assert.equal(reachFor(order(), { by, isOpener: false }), other)
    })

    test(`what is sold in place of an extension is handed to ${by} only if it proves the payment`, () => {
      const replacement = order({ extends_id: 'catch_0' })
      const isProof = PROOFS.includes(by)
      for (const isOpener of [true, false]) {
        const ordinary = reachFor(order(), { by, isOpener })
        assert.equal(reachFor(replacement, { by, isOpener }), isProof ? ordinary : NEVER)
      }
    })

    test(`an answer is repeated to ${by} if nobody else can have it`, () => {
      const claim = { by, isOpener: true }
      const isOwn = KEYS_OF_THEIR_OWN.includes(by)
      const within = order({ delivered_at: NOW - 10 * MINUTE + 1 })
      const after = order({ delivered_at: NOW - 10 * MINUTE })
      assert.equal(mayRepeat(within, claim, NOW), isOwn || by === 'weak key and id')
      assert.equal(mayRepeat(after, claim, NOW), isOwn)
      assert.equal(mayRepeat(order({ delivered_at: null }), claim, NOW), isOwn)
    })

    test(`an answer is repeated to ${by} only as far as the claim reaches, and never after the seal`, () => {
      const claim = { by, isOpener: false }
      const isOwn = KEYS_OF_THEIR_OWN.includes(by)
      for (const contested of Object.values(CONTESTED)) {
        const isReached = contested <= REACH[by][1]
        const isRepeated = isReached && (isOwn || by === 'weak key and id')
        assert.equal(mayRepeat(order({ contested }), claim, NOW), isRepeated, String(contested))
      }
      assert.equal(mayRepeat(order({ sealed_at: NOW }), claim, NOW), false)
      assert.equal(mayRepeat(order({ expires_at: NOW }), claim, NOW), false)
    })
  }
})

suite('the use of a key', () => {
  const STRANGER = '198.51.100.9'
  const WEAK = 'order-17-retry-0001'
  const STRONG = KEY

  /** An order under that key, with the statements that its claims have cost. */
  async function aUsedOrder(t: TestContext, key: string) {
    const shop = await aShop(t)
    const quote = await shop.quote(key)
    let statements = 0
    const counting: Db = {
      ...shop.db,
      read: (text, ...values) => {
        statements++
        return shop.db.read(text, ...values)
      },
      write: (unit) => {
        statements++
        return shop.db.write(unit)
      },
    }
    const secrets = createSecrets([new Uint8Array(Buffer.from(SECRET, 'hex'))])
    const claims = createClaims({ store: createOrderStore(counting), secrets })
    const row = async () => (await shop.order(quote)) as OrderRow
    return { shop, claims, row, cost: () => statements }
  }

  test('a claim by key says how strong the key is, whether it is an alias, and who opened the order', async (t) => {
    const { claims, row } = await aUsedOrder(t, WEAK)
    const opened = await row()
    const by = (key: string, client: string | null, isAlias = false) => {
      const claim = claims.ofKey(opened, aName(key, { client }), isAlias)
      return [claim.by, claim.isOpener]
    }
    assert.deepEqual(by(WEAK, CLIENT), ['weak key', true])
    assert.deepEqual(by(WEAK, STRANGER), ['weak key', false])
    assert.deepEqual(by(WEAK, null), ['weak key', false])
    assert.deepEqual(by(WEAK, CLIENT, true), ['weak alias', true])
    assert.deepEqual(by(STRONG, STRANGER), ['strong key', false])
    assert.deepEqual(by(STRONG, STRANGER, true), ['strong key', false])
    const old = { ...opened, opened_by: null }
    assert.equal(claims.ofKey(old, aName(WEAK), false).isOpener, false)
  })

  test('a claim by a poll says whether it had the key, and how strong that is', async (t) => {
    const { claims, row } = await aUsedOrder(t, WEAK)
    const opened = await row()
    const by = (key: string | null, client: string | null) => claims.ofPoll(opened, { key, client })
    assert.deepEqual(by(null, CLIENT), { by: 'id', isOpener: true })
    assert.deepEqual(by(null, STRANGER), { by: 'id', isOpener: false })
    assert.deepEqual(by(WEAK, null), { by: 'weak key and id', isOpener: false })
    assert.deepEqual(by(STRONG, CLIENT), { by: 'strong key', isOpener: true })
  })

  test('a weak key of another client contests its order for good', async (t) => {
    const { claims, row } = await aUsedOrder(t, WEAK)
    const used = await claims.afterUse(await row(), aName(WEAK, { client: STRANGER }))
    assert.equal(used.contested, CONTESTED.beforePayment)
    assert.deepEqual(used, await row())
  })

  test('two uses that see an uncontested order at once both learn that it is contested', async (t) => {
    const { claims, row } = await aUsedOrder(t, WEAK)
    const seen = await row()
    for (const client of [STRANGER, null]) {
      const used = await claims.afterUse(seen, aName(WEAK, { client }))
      assert.equal(used.contested, CONTESTED.beforePayment)
    }
  })

  test('an order that was deleted meanwhile stays what its reader saw', async (t) => {
    const { shop, claims, row } = await aUsedOrder(t, WEAK)
    const seen = await row()
    await shop.db.write(unit({ text: 'delete from purchase_order', values: [] }))
    assert.equal(await claims.afterUse(seen, aName(WEAK, { client: STRANGER })), seen)
  })

  const FREE: Record<string, [key: string, client: string | null, facts: Partial<OrderRow>]> = {
    'by the opener': [WEAK, CLIENT, {}],
    'with a strong key': [STRONG, STRANGER, {}],
    'of an order that an older release opened': [WEAK, STRANGER, { opened_by: null }],
    'of an order that is contested already': [WEAK, STRANGER, { contested: afterPayment }],
  }
  for (const [what, [key, client, facts]] of Object.entries(FREE)) {
    test(`a use ${what} changes nothing, and asks the store for nothing`, async (t) => {
      const { claims, row, cost } = await aUsedOrder(t, key)
      const seen = { ...(await row()), ...facts } as OrderRow
      assert.equal(await claims.afterUse(seen, aName(key, { client })), seen)
      assert.equal(cost(), 0)
      assert.equal((await row()).contested, CONTESTED.no)
    })
  }
})
