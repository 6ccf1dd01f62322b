/** Who may have the capability of an order: every claim on every order, as one table. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { type Claim, mayRepeat, reachFor } from '../../src/payment/claims.ts'
import { CONTESTED, type OrderRow } from '../../src/payment/store.ts'

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
