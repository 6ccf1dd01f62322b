import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  clientMark,
  extensionRoute,
  isIdempotencyKey,
  isOpener,
  orderIds,
  purchaseRoute,
} from '../../src/payment/keys.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'

const one = new Uint8Array(32).fill(1)
const two = new Uint8Array(32).fill(2)
const secrets = createSecrets([one])

const UUID = '5f8a2c1e-0d3b-4a6f-9e7c-1b2d3e4f5a6b'
const WEAK = 'order-0001'
const ask = { route: purchaseRoute('catch'), key: UUID }

const KEYS: [key: string, isKey: boolean, note: string][] = [
  [UUID, true, 'a UUID'],
  [WEAK, true, 'a counter'],
  ['12345678', true, 'the shortest'],
  ['1234567', false, 'one too short'],
  ['x'.repeat(128), true, 'the longest'],
  ['x'.repeat(129), false, 'one too long'],
  ['order 01 of today', true, 'spaces inside'],
  [' order-01', false, 'a space in front'],
  ['order\t01', false, 'a control character'],
  ['order-01\n', false, 'a line end'],
  ['bestellung-ä', false, 'not ASCII'],
]

for (const [key, isKey, note] of KEYS) {
  test(`${note} ${isKey ? 'is' : 'is not'} a key`, () => {
    assert.equal(isIdempotencyKey(key), isKey)
  })
}

test('an order id stays the same from release to release', () => {
  assert.deepEqual(orderIds(secrets, ask), ['order_1sVwu86LJPhs2sL3DuRz7n'])
})

test('the same key on another route is another order', () => {
  for (const route of [purchaseRoute('pulse'), extensionRoute('catch')]) {
    assert.notDeepEqual(orderIds(secrets, { ...ask, route }), orderIds(secrets, ask))
  }
})

test('route and key are never mistaken for each other', () => {
  const id = (route: string, key: string) => orderIds(secrets, { route, key })[0]
  assert.equal(new Set([id('ab', 'c-key-01'), id('a', 'bc-key-01'), id('', 'abc-key-01')]).size, 3)
})

test('the client who opened an order is known again, under an older secret too, and by nothing else', () => {
  const mark = clientMark(secrets, '203.0.113.7')
  assert.match(mark, /^[0-9a-f]{32}$/)
  assert.deepEqual(
    [
      isOpener(secrets, '203.0.113.7', { opened_by: mark }),
      isOpener(createSecrets([two, one]), '203.0.113.7', { opened_by: mark }),
      isOpener(createSecrets([two]), '203.0.113.7', { opened_by: mark }),
      isOpener(secrets, '203.0.113.8', { opened_by: mark }),
      isOpener(secrets, null, { opened_by: mark }),
      isOpener(secrets, null, { opened_by: clientMark(secrets, null) }),
      isOpener(secrets, '', { opened_by: clientMark(secrets, null) }),
    ],
    [true, true, false, false, false, false, false],
  )
})

test('an order whose opener is not known exactly has a mark that is empty', () => {
  assert.equal(clientMark(secrets, null), '')
})
