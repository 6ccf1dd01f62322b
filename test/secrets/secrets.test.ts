import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSecrets, keyedHash, seal, unseal } from '../../src/secrets/secrets.ts'

const one = new Uint8Array(32).fill(1)
const two = new Uint8Array(32).fill(2)
const three = new Uint8Array(32).fill(3)
const plain = Uint8Array.from({ length: 32 }, (_, i) => i)
const USES = [
  'order id',
  'idempotency key',
  'delivery seed',
  'fingerprint',
  'payment challenge',
  'l402 root',
]

test('each use of a secret has a key of its own', () => {
  const keys = USES.map((use) => Buffer.from(createSecrets([one]).keys(use)[0]).toString('hex'))
  assert.equal(new Set(keys).size, USES.length)
  assert.ok(!keys.includes(Buffer.from(one).toString('hex')))
})

test('a key stays the same from release to release', () => {
  // HKDF-SHA-256 of 32 bytes 0x01, no salt, info `mayfly/<use>`; computed with another library.
  const keys = USES.map((use) => [
    use,
    Buffer.from(createSecrets([one]).keys(use)[0]).toString('hex'),
  ])
  assert.deepEqual(Object.fromEntries(keys), {
    'order id': 'f9fbb05b75a6f3a71965d1627639b0dda514c466d89d029bb8c9876bdc376fea',
    'idempotency key': '854c0a6d77cd483ce3fa672d040e04cf9b9008bc13131f44f6b5bca58664037d',
    fingerprint: '21fb3ec68709bbafe75c4b5323a59237d4110d8891f1147df0f951e0893b7594',
    'payment challenge': '16a46d4c5bc551469f4d1a059144a4768e7f4d421ac31de3aff1dfd023cc70dc',
    'l402 root': '259413a145a378b7451582df5f6571c4492acf66943d845a9339e11b98535558',
    'delivery seed': '1a71546a541a550a3b610667132100c4c97fac4782e1ad46321491576bb31625',
  })
})

test('each use has one key under each secret, the current one first', () => {
  const [a] = createSecrets([one]).keys('delivery seed')
  const [b] = createSecrets([two]).keys('delivery seed')
  const [c] = createSecrets([three]).keys('delivery seed')
  assert.deepEqual(createSecrets([two, one, three]).keys('delivery seed'), [b, a, c])
})

test('sealed bytes open with the same key and context', () => {
  for (const bytes of [plain, new Uint8Array()]) {
    const opened = unseal([one], seal(one, bytes, 'order_1'), 'order_1')
    assert.deepEqual(opened?.plain, Buffer.from(bytes))
  }
})

test('sealed bytes open with any configured key, which says whether it is the current one', () => {
  const sealed = seal(two, plain, 'order_1')
  const opened = (isCurrent: boolean) => ({ plain: Buffer.from(plain), isCurrent })
  assert.deepEqual(unseal([two, one], sealed, 'order_1'), opened(true))
  assert.deepEqual(unseal([one, three, two], sealed, 'order_1'), opened(false))
})

test('sealed bytes open with no other key, and in no other context', () => {
  const sealed = seal(one, plain, 'order_1')
  assert.equal(unseal([two], sealed, 'order_1'), null)
  assert.equal(unseal([one], sealed, 'order_2'), null)
  assert.equal(unseal([one], sealed, ''), null)
})

test('sealed bytes do not open once any byte of them is changed or missing', () => {
  const sealed = seal(one, plain, 'order_1')
  for (let at = 0; at < sealed.length; at++) {
    const forged = Buffer.from(sealed)
    forged[at] = (forged[at] ?? 0) ^ 1
    assert.equal(unseal([one], forged, 'order_1'), null, `byte ${at} was changed`)
    assert.equal(unseal([one], sealed.subarray(0, at), 'order_1'), null, `cut at ${at}`)
  }
})

test('the same bytes sealed twice look different, and show nothing of what they are', () => {
  const sealed = seal(one, plain, 'order_1')
  assert.notDeepEqual(seal(one, plain, 'order_1'), sealed)
  assert.equal(sealed.includes(Buffer.from(plain)), false)
})

test('a keyed hash tells its parts apart', () => {
  const hashes = [['ab', 'c'], ['a', 'bc'], ['abc'], ['abc', ''], ['', 'abc']].map((parts) =>
    keyedHash(one, ...parts).toString('hex'),
  )
  assert.equal(new Set(hashes).size, hashes.length)
  assert.notDeepEqual(keyedHash(two, 'ab', 'c'), keyedHash(one, 'ab', 'c'))
})
