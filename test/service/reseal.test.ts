import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { pino } from 'pino'
import { createAlertStore } from '../../src/alerts/store.ts'
import type { Db } from '../../src/db/db.ts'
import { fingerprints, type Secrets, seal, unseal } from '../../src/secrets/secrets.ts'
import { reseal } from '../../src/service/reseal.ts'
import { orderRows, SETTLED, T } from '../support/order-rows.ts'
import { bytes, destination } from '../support/outbox.ts'
import { aShop, SECRET, secretsOf } from '../support/shop.ts'

const NEW = '22'.repeat(32)
const FOREIGN = '33'.repeat(32)
const BOTH = secretsOf(NEW, SECRET)

/** Seals anew. @returns the lines that were logged. */
async function resealed(db: Db, secrets: Secrets = BOTH): Promise<Record<string, unknown>[]> {
  const lines: string[] = []
  const log = pino({ base: null, timestamp: false }, { write: (line) => void lines.push(line) })
  await reseal({ db, secrets, log })
  return lines.map((line) => JSON.parse(line))
}

suite('changing the secret', () => {
  test('changing the secret gives no seed back to an order whose delivery is sealed meanwhile', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paidAndSeen()
    const { public_id } = (await shop.order(quote)) ?? {}
    await resealed({
      ...shop.db,
      // A first use of the token between the reading of the seed and its writing.
      async write(one) {
        await shop.use(String(public_id))
        return shop.db.write(one)
      },
    })
    const order = await shop.order(quote)
    assert.notEqual(order?.sealed_at, null)
    assert.equal(order?.seed, null)
  })

  test('a start under a new secret goes on once every seed is sealed under it', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paidAndSeen()
    const before = (await shop.order(quote))?.seed
    let underWay = 0
    await resealed({
      ...shop.db,
      async write(one) {
        underWay++
        for (let i = 0; i < 20; i++) await turn()
        return shop.db.write(one).finally(() => underWay--)
      },
    })
    assert.equal(underWay, 0)
    assert.notDeepEqual((await shop.order(quote))?.seed, before)
  })

  test('changing the secret re-encrypts each seed of the previous one, however many, and touches no other', async (t) => {
    const { add, row, db } = await orderRows(t)
    const [current] = secretsOf(NEW).seedKeys
    const [previous] = secretsOf(SECRET).seedKeys
    const [foreign] = secretsOf(FOREIGN).seedKeys
    const plain = (i: number) => new Uint8Array(32).fill(i % 251)
    const [ours] = fingerprints(BOTH)
    const settled = { ...SETTLED, expires_at: T + 100, secret_id: ours }
    const old = Array.from({ length: 501 }, (_, i) => `order_${1_000 + i}`)
    for (const [i, id] of old.entries()) {
      await add(id, { ...settled, seed: seal(previous, plain(i), id) })
    }
    // Before, between and after them.
    const others = {
      order_0: seal(foreign, plain(1), 'order_0'),
      order_1250b: seal(current, plain(2), 'order_1250b'),
      order_9: new Uint8Array([1]),
    }
    for (const [id, seed] of Object.entries(others)) await add(id, { ...settled, seed })
    await add('order_wiped', { ...settled, seed: null })

    assert.deepEqual(await resealed(db), [])
    for (const [i, id] of old.entries()) {
      const { seed } = await row(id)
      assert.ok(seed)
      const opened = unseal(BOTH.seedKeys, seed, id)
      assert.ok(opened?.isCurrent, id)
      assert.deepEqual(new Uint8Array(opened.plain), plain(i))
    }
    for (const [id, seed] of Object.entries(others)) {
      assert.deepEqual(new Uint8Array((await row(id)).seed ?? []), new Uint8Array(seed))
    }
    assert.equal((await row('order_wiped')).seed, null)
  })

  test('both secrets of a destination are sealed anew, and a log line counts those that nothing opens', async (t) => {
    const { db, run } = await orderRows(t)
    const store = createAlertStore(db)
    const [previous] = secretsOf(SECRET).keys('alert destination')
    const add = async (id: string, sealed: Record<string, Uint8Array>) => {
      await run(destination(id, id))
      const values = [id, sealed.target ?? bytes(1), sealed.secret ?? bytes(2)]
      await run({
        text: 'update alert_destination set sealed_target = $2, sealed_secret = $3 where destination_id = $1',
        values,
      })
    }
    const of = (id: string, text: string) => seal(previous, Buffer.from(text), id)
    await add('ours', { target: of('ours', 'a url'), secret: of('ours', 'a secret') })
    // Each counts once, whether one of its two secrets opens or none.
    await add('half', { target: of('half', 'a url') })
    await add('lost', {})
    const [line, ...more] = await resealed(db)
    assert.deepEqual(more, [])
    const { event, level, destinations } = line ?? {}
    assert.deepEqual([event, level, destinations], ['alerts.foreign_secret', 40, 2])
    const keys = BOTH.keys('alert destination')
    const [row] = await store.ofOwner('ours')
    for (const [sealed, text] of [
      [row?.sealed_target, 'a url'],
      [row?.sealed_secret, 'a secret'],
    ] as const) {
      assert.ok(sealed)
      const opened = unseal(keys, sealed, 'ours')
      assert.deepEqual([opened?.plain.toString(), opened?.isCurrent], [text, true])
    }
    assert.deepEqual((await store.ofOwner('lost'))[0]?.sealed_target[0], 1)
  })
})
