import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isId } from '../../src/lib/ids.ts'
import {
  isIdempotencyKey,
  isKeyOf,
  isStrongKey,
  keyHash,
  orderIds,
} from '../../src/payment/idempotency.ts'
import { createSecrets } from '../../src/payment/secrets.ts'

const one = new Uint8Array(32).fill(1)
const two = new Uint8Array(32).fill(2)
const secrets = createSecrets([one])

const UUID = '5f8a2c1e-0d3b-4a6f-9e7c-1b2d3e4f5a6b'
const WEAK = 'order-0001'
const ask = { route: '/api/payments/catch', key: UUID, clientAddress: '203.0.113.7' }

const KEYS: [key: string, isKey: boolean, isStrong: boolean, note: string][] = [
  [UUID, true, true, 'a UUID'],
  [UUID.toUpperCase(), true, true, 'a UUID in upper case'],
  [UUID.replaceAll('-', ''), true, true, '32 hex digits'],
  ['0123456789abcdef'.repeat(4), true, true, '64 hex digits'],
  ['0123456789ABCDEF'.repeat(2), true, true, '32 hex digits in upper case'],
  ['0123456789abcdef'.repeat(2).slice(1), true, false, '31 hex digits'],
  [`${UUID}x`, true, false, 'a UUID with something after it, without upper case'],
  ['AbcdefghijklmnopqrstuV1', true, true, '23 base64url characters'],
  ['AbcdefghijklmnopqrstV1', true, true, '22 base64url characters'],
  ['AbcdefghijklmnopqrsV1', true, false, '21 base64url characters'],
  ['Abcdefghij_lmnopqrs-V1', true, true, 'base64url with its two signs'],
  ['Abcdefghij+lmnopqrs/V1', true, false, 'plain base64 is no base64url'],
  ['abcdefghijklmnopqrstuv1', true, false, 'no upper case'],
  ['ABCDEFGHIJKLMNOPQRSTUV1', true, false, 'no lower case'],
  ['AbcdefghijklmnopqrstuVw', true, false, 'no digit'],
  [
    'the-order-of-2026-01-02-of-Alice',
    true,
    true,
    'looks guessable, and has the form of a strong one',
  ],
  [WEAK, true, false, 'a counter'],
  ['12345678', true, false, 'the shortest'],
  ['1234567', false, false, 'one too short'],
  ['x'.repeat(128), true, false, 'the longest'],
  ['x'.repeat(129), false, false, 'one too long'],
  ['order 01 of today', true, false, 'spaces inside'],
  [' order-01', false, false, 'a space in front'],
  ['order\t01', false, false, 'a control character'],
  ['order-01\n', false, false, 'a line end'],
  ['bestellung-ä', false, false, 'not ASCII'],
]

for (const [key, isKey, isStrong, note] of KEYS) {
  test(`a key: ${note} is ${isKey ? (isStrong ? 'strong' : 'weak') : 'none'}`, () => {
    assert.deepEqual(
      { isKey: isIdempotencyKey(key), isStrong: isStrongKey(key) },
      { isKey, isStrong },
    )
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

test('a strong key reaches its order from any address', () => {
  assert.deepEqual(
    orderIds(secrets, { ...ask, clientAddress: '198.51.100.1' }),
    orderIds(secrets, ask),
  )
})

test('a weak key reaches its order only from the address that used it', () => {
  const weak = { ...ask, key: WEAK }
  assert.notDeepEqual(
    orderIds(secrets, { ...weak, clientAddress: '198.51.100.1' }),
    orderIds(secrets, weak),
  )
})

test('the same key on another route is another order', () => {
  assert.notDeepEqual(
    orderIds(secrets, { ...ask, route: '/api/payments/pulse' }),
    orderIds(secrets, ask),
  )
})

test('route, address and key do not run into each other', () => {
  const split = (route: string, clientAddress: string, key: string) =>
    orderIds(secrets, { route, clientAddress, key })[0]
  const ids = [
    split('ab', 'c', 'weak-key'),
    split('a', 'bc', 'weak-key'),
    split('ab', '', 'cweak-key'),
  ]
  assert.equal(new Set(ids).size, ids.length)
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

test('what is stored of a key is not its order id', () => {
  const hash = keyHash(secrets, UUID).toString('hex')
  assert.ok(!orderIds(secrets, ask)[0].includes(hash))
  assert.equal(hash.length, 64)
})
