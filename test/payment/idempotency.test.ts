import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isId } from '../../src/lib/ids.ts'
import {
  clientMark,
  formerOrderIds,
  isClientOf,
  isIdempotencyKey,
  isKeyOf,
  keyHash,
  orderIds,
} from '../../src/payment/idempotency.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'

const one = new Uint8Array(32).fill(1)
const two = new Uint8Array(32).fill(2)
const secrets = createSecrets([one])

const UUID = '5f8a2c1e-0d3b-4a6f-9e7c-1b2d3e4f5a6b'
const WEAK = 'order-0001'
const ask = { route: '/api/payments/catch', key: UUID }

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

test('a key stands for the same order each time, in the form of an order id', () => {
  const ids = orderIds(secrets, ask)
  assert.deepEqual(ids, orderIds(createSecrets([one]), { ...ask }))
  assert.equal(ids.length, 1)
  assert.ok(isId('order', ids[0]))
})

test('an order id stays the same from release to release', () => {
  assert.deepEqual(orderIds(secrets, ask), ['order_6n6Ga59ntGz7L6A7hd4A8t'])
})

test('an old order is found at the address that opened it, if its key seemed guessable', () => {
  const at = (clientAddress: string, key = WEAK) =>
    formerOrderIds(secrets, { route: ask.route, key, clientAddress })
  assert.equal(at('203.0.113.7').length, 1)
  assert.notDeepEqual(at('203.0.113.7'), at('198.51.100.1'))
  assert.notDeepEqual(at('203.0.113.7'), orderIds(secrets, { ...ask, key: WEAK }))
  for (const key of [UUID, UUID.toUpperCase(), '0123456789abcdef'.repeat(4)]) {
    assert.deepEqual(at('203.0.113.7', key), [], key)
  }
  assert.deepEqual(at('203.0.113.7'), ['order_4rWqqzVR6lNi9iXsnEYX80'])
})

test('the same key on another route is another order', () => {
  assert.notDeepEqual(
    orderIds(secrets, { ...ask, route: '/api/payments/pulse' }),
    orderIds(secrets, ask),
  )
})

test('route, address and key are never mistaken for each other', () => {
  const split = (route: string, clientAddress: string, key: string) =>
    formerOrderIds(secrets, { route, clientAddress, key })[0]
  const ids = [
    split('ab', 'c', 'weak-key'),
    split('a', 'bc', 'weak-key'),
    split('ab', '', 'cweak-key'),
    orderIds(secrets, { route: 'ab', key: 'cweak-key' })[0],
  ]
  assert.equal(new Set(ids).size, 3)
  assert.equal(ids[2], ids[3])
})

test('the client who opened an order is known again, under an older secret too, and by nothing else', () => {
  const mark = clientMark(secrets, '203.0.113.7')
  assert.match(mark, /^[0-9a-f]{32}$/)
  assert.deepEqual(
    [
      isClientOf(secrets, '203.0.113.7', mark),
      isClientOf(createSecrets([two, one]), '203.0.113.7', mark),
      isClientOf(createSecrets([two]), '203.0.113.7', mark),
      isClientOf(secrets, '203.0.113.8', mark),
      isClientOf(secrets, null, mark),
      isClientOf(secrets, null, clientMark(secrets, null)),
      isClientOf(secrets, '', clientMark(secrets, null)),
    ],
    [true, true, false, false, false, false, false],
  )
})

test('an order whose opener is not known exactly has a mark that is empty', () => {
  assert.equal(clientMark(secrets, null), '')
})

test('a key stands for one order under each secret, the current one first', () => {
  const [current] = orderIds(createSecrets([two]), ask)
  const [older] = orderIds(secrets, ask)
  assert.deepEqual(orderIds(createSecrets([two, one]), ask), [current, older])
  assert.notEqual(current, older)
})

test('a key is known by its hash, under an older secret too', () => {
  const stored = keyHash(secrets, UUID)
  assert.deepEqual(
    [
      isKeyOf(secrets, UUID, stored),
      isKeyOf(createSecrets([two, one]), UUID, stored),
      isKeyOf(createSecrets([two]), UUID, stored),
      isKeyOf(secrets, `${UUID} `, stored),
      isKeyOf(secrets, UUID.toUpperCase(), stored),
      isKeyOf(secrets, UUID, stored.subarray(1)),
    ],
    [true, true, false, false, false, false],
  )
})

test('the stored form of a key is not its order id', () => {
  const hash = keyHash(secrets, UUID).toString('hex')
  assert.ok(!orderIds(secrets, ask)[0].includes(hash))
  assert.equal(hash.length, 64)
})
