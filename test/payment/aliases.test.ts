/** Which keys name an order besides its own. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAliases, MAX_ALIASES } from '../../src/payment/aliases.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import { orderRows, T } from '../support/order-rows.ts'

async function anAlias(t: Parameters<typeof orderRows>[0]) {
  const { db, add } = await orderRows(t)
  for (const id of ['one', 'other']) await add(id)
  const aliases = createAliases({ db, secrets: createSecrets([new Uint8Array(32).fill(1)]) })
  const name = (orderId: string, key: string) =>
    aliases.add({ aliasId: `id of ${key}`, orderId, key, now: T })
  return { db, aliases, name }
}

test('a key that was added to an order is a name of that order, and of no other', async (t) => {
  const { aliases, name } = await anAlias(t)
  await name('one', 'a-key')
  await name('other', 'another-key')
  assert.equal(await aliases.has('one', 'a-key'), true)
  assert.equal(await aliases.has('one', 'another-key'), false)
  assert.equal(await aliases.has('other', 'a-key'), false)
})

test('a key that names an order goes on to name that one', async (t) => {
  const { db, aliases, name } = await anAlias(t)
  await name('one', 'a-key')
  await name('other', 'a-key')
  assert.equal(await aliases.has('one', 'a-key'), true)
  assert.equal(await aliases.has('other', 'a-key'), false)
  await aliases.add({ aliasId: 'other', orderId: 'one', key: 'its-own-key', now: T })
  assert.equal(await aliases.has('one', 'its-own-key'), false)
  assert.deepEqual(await db.read('select alias_id, order_id, created_at from order_alias'), [
    { alias_id: 'id of a-key', order_id: 'one', created_at: T },
  ])
})

test('one order has so many names at most, whatever names the others have', async (t) => {
  const { aliases, name } = await anAlias(t)
  for (let i = 0; i <= MAX_ALIASES; i++) await name('one', `key-${i}`)
  assert.equal(await aliases.has('one', `key-${MAX_ALIASES - 1}`), true)
  assert.equal(await aliases.has('one', `key-${MAX_ALIASES}`), false)
  await name('other', 'a-key')
  assert.equal(await aliases.has('other', 'a-key'), true)
})
