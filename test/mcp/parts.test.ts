/** The parts of /mcp that bound and name things. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { suite, test } from 'node:test'
import { base62 } from '../../src/lib/base62.ts'
import { utf8 } from '../../src/lib/bytes.ts'
import { createCalls } from '../../src/mcp/calls.ts'
import { createPurchaseIds } from '../../src/mcp/purchase-id.ts'
import { isStrongKey } from '../../src/payment/key-strength.ts'
import { hmacSha256 } from '../../src/protocol/hmac.ts'

suite('the names of purchases', () => {
  const key = randomBytes(32)

  test('each name of a purchase is another one, and gives a key that nobody can guess', () => {
    const ids = createPurchaseIds([key])
    const made = Array.from({ length: 2_000 }, ids.make)
    assert.equal(new Set(made).size, made.length)
    for (const id of made) {
      const named = ids.keyOf(id)
      assert.ok(named !== null && isStrongKey(named), id)
      assert.equal(ids.keyOf(id), named)
    }
  })

  test('the name of a purchase counts as random even where its digits look like what people choose', () => {
    const ids = createPurchaseIds([key])
    const tagOf = (random: string) => base62(hmacSha256(key, utf8(random)).subarray(0, 8))
    for (const random of ['0'.repeat(22), '1234567890123456789012', 'invoicePaymentCustomer']) {
      const named = ids.keyOf(random + tagOf(random))
      assert.ok(named !== null && isStrongKey(named), random)
    }
    assert.ok(!isStrongKey('0'.repeat(33)), 'without its tag it would not')
  })

  test('the name of a purchase by another secret is unknown, and one by the previous secret is known', () => {
    const id = createPurchaseIds([key]).make()
    assert.equal(createPurchaseIds([randomBytes(32)]).keyOf(id), null)
    assert.ok(createPurchaseIds([randomBytes(32), key]).keyOf(id))
  })
})

suite('the requests under way', () => {
  test('the requests under way are so many for a network and so many in all, and an end counts once', () => {
    const calls = createCalls({ perNetwork: 2, inAll: 3 })
    const first = calls.begin('a')
    assert.ok(first && calls.begin('a'))
    assert.equal(calls.begin('a'), null)
    assert.ok(calls.begin('b'))
    assert.equal(calls.begin('c'), null)
    first()
    first()
    assert.ok(calls.begin('a'))
    assert.equal(calls.begin('a'), null)
    assert.equal(calls.begin('c'), null)
  })
})
