/** Each statement changes one WHISPER, one receipt or one order, and leaves the others alone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UnitRefused } from '../../src/db/db.ts'
import {
  dropReceipts,
  endedReceipts,
  findReceipt,
  insertReceipt,
  livingReceipt,
  noteDestroyed,
  noteRead,
} from '../../src/whisper/receipt-store.ts'
import { createWhisper } from '../../src/whisper/service.ts'
import {
  createWhisperStore,
  dropWhisper,
  insertWhisper,
  releaseCiphertext,
  reserveCiphertext,
  restoreCiphertext,
  spendRead,
} from '../../src/whisper/store.ts'
import type { After } from '../support/folder.ts'
import { aDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const MINUTE = 60_000
const T = Math.ceil(1_800_000_000_000 / MINUTE) * MINUTE
const LIMITS = { perNetwork: 1_000_000, inAll: 10_000_000 }

test('a read is spent of one WHISPER, its bytes are those of that one, and they stay for the next read', async (t) => {
  const { sell, spend, left, ciphertexts } = await aStore(t)
  await sell('a', { reads_left: 2 })
  await sell('b', { reads_left: 2 })
  assert.deepEqual(await spend('a'), { bytes: 'a', reads: 1 })
  assert.deepEqual(await left(), { a: 1, b: 2 })
  assert.deepEqual(await ciphertexts(), ['a', 'b'])
})

test('a WHISPER without reads left is spent no more, and its bytes are gone, but not those of others', async (t) => {
  const { sell, spend, left, ciphertexts } = await aStore(t)
  await sell('a', { reads_left: 1 })
  await sell('b', { reads_left: 1 })
  await spend('a')
  assert.deepEqual(await left(), { b: 1 })
  assert.deepEqual(await ciphertexts(), ['b'])
  await assert.rejects(spend('a'), UnitRefused)
})

test('a read is refused once its WHISPER is over, and before it is revealed, to the millisecond', async (t) => {
  const { run, sell, spend } = await aStore(t)
  await sell('over', { expires_at: T })
  await assert.rejects(spend('over', T), UnitRefused)
  await sell('hidden', { reveal_at: T + 1, expires_at: T + MINUTE })
  await assert.rejects(spend('hidden', T), UnitRefused)
  assert.equal((await spend('hidden', T + 1)).bytes, 'hidden')
  await sell('suspended')
  await run({
    text: `update whisper set suspended_at = 1 where public_id = 'suspended'`,
    values: [],
  })
  await assert.rejects(spend('suspended', T), UnitRefused)
})

test('a WHISPER whose last read is spent is no longer spent, also before its row is deleted', async (t) => {
  const { run, sell, spend } = await aStore(t)
  await sell('a')
  await run({ text: 'update whisper set reads_left = 0', values: [] })
  await assert.rejects(spend('a'), UnitRefused)
})

test('a read without its bytes is refused, and spends nothing', async (t) => {
  const { run, sell, spend, left } = await aStore(t)
  await sell('a')
  await run({ text: 'delete from whisper_ciphertext', values: [] })
  await assert.rejects(spend('a'), UnitRefused)
  assert.deepEqual(await left(), { a: 3 })
})

test('a WHISPER is destroyed once, with its bytes, and alone', async (t) => {
  const { run, sell, left, ciphertexts } = await aStore(t)
  await sell('a')
  await sell('b')
  await run(...dropWhisper('b'))
  assert.deepEqual(await left(), { a: 3 })
  assert.deepEqual(await ciphertexts(), ['a'])
  await assert.rejects(run(...dropWhisper('b')), UnitRefused)
})

test('a read of a WHISPER with a receipt is noted on it in the same unit', async (t) => {
  const { db, sell, receipt, find } = await aStore(t)
  await sell('a')
  await receipt('a')
  await db.write({ lockKey: 'a', statements: spendRead({ public_id: 'a', has_receipt: 1 }, T) })
  assert.equal((await find('a')).reads_spent, 1)
})

test('bytes are released of one order, and never those of a WHISPER that was paid', async (t) => {
  const { run, reserve, sell, ciphertexts } = await aStore(t)
  await sell('paid')
  await reserve('waiting')
  await reserve('dead')
  await run(...releaseCiphertext('order of dead'), ...releaseCiphertext('order of paid'))
  assert.deepEqual(await ciphertexts(), ['paid', 'waiting'])
})

test('bytes that are restored count against no limit, and change nothing of what is still there', async (t) => {
  const { db, run, reserve, ciphertexts } = await aStore(t)
  await reserve('kept')
  const restore = (name: string, byte: string) =>
    run(
      ...restoreCiphertext({
        orderId: `order of ${name}`,
        clientNetwork: 'n',
        ciphertext: Buffer.from(byte),
      }),
    )
  await restore('gone', 'restored')
  await restore('kept', 'other bytes')
  assert.deepEqual(await ciphertexts(), ['kept', 'restored'])
  assert.deepEqual(
    await db.read('select order_id, byte_count from whisper_reservation order by order_id'),
    [
      { order_id: 'order of gone', byte_count: 0 },
      { order_id: 'order of kept', byte_count: 4 },
    ],
  )
})

test('a WHISPER is made of what is reserved, once', async (t) => {
  const { run, sell } = await aStore(t)
  await sell('a')
  await assert.rejects(run(...whisper('another', { order_id: 'order of a' })), UnitRefused)
})

test('what is told of a WHISPER is its own, with the size of its bytes, and nothing while it is suspended', async (t) => {
  const { run, sell, store } = await aStore(t)
  await sell('a', { reveal_at: T + 5, expires_at: T + MINUTE })
  await sell('long name')
  assert.deepEqual(await store.facts('a'), {
    public_id: 'a',
    read_token_hash: new Uint8Array([7]),
    reveal_at: T + 5,
    expires_at: T + MINUTE,
    has_receipt: 0,
    has_switch: 0,
    byte_count: 1,
  })
  assert.equal((await store.facts('long name'))?.byte_count, 9)
  assert.equal(await store.facts('none'), null)
  assert.equal(await store.isThere('a'), true)
  assert.equal(await store.isThere('none'), false)
  await run({ text: `update whisper set suspended_at = 1 where public_id = 'a'`, values: [] })
  assert.equal(await store.facts('a'), null)
  assert.equal(await store.isThere('a'), false)
})

test('a WHISPER whose bytes were spent in between is still known, without a size', async (t) => {
  const { run, sell, store } = await aStore(t)
  await sell('a')
  await run({ text: 'delete from whisper_ciphertext', values: [] })
  assert.equal((await store.facts('a'))?.byte_count, null)
})

test('what is over is listed, the longest over first, at most so many', async (t) => {
  const { sell, store } = await aStore(t)
  for (const [name, expires_at] of Object.entries({ c: T + 1, b: T, a: T - 1 })) {
    await sell(name, { expires_at })
  }
  const expired = async (limit: number) =>
    (await store.expired(T, limit)).map(({ public_id }) => public_id)
  assert.deepEqual(await expired(9), ['a', 'b'])
  assert.deepEqual(await expired(1), ['a'])
})

test('a purge deletes what is over with its bytes, however much it is, and nothing else', async (t) => {
  const { db, sell, reserve, left, ciphertexts } = await aStore(t)
  // More than one round of the purge.
  for (let i = 0; i < 101; i++) await sell(`over ${i}`)
  await sell('a', { expires_at: T + MINUTE + 1 })
  await reserve('waiting')
  const clock = { now: () => T, isHeld: () => false, hasGoneBack: () => false }
  const { purge } = createWhisper({
    db,
    clock,
    unpaidBytes: LIMITS,
    bindings: { isOpen: async () => true },
    alerts: { tell: () => [] },
  })
  assert.equal(await purge(T + MINUTE - 1), 0)
  assert.equal(await purge(T + MINUTE), 101)
  assert.deepEqual([await left(), await ciphertexts()], [{ a: 3 }, ['a', 'waiting']])
})

test('a receipt notes each read to the minute, the newest first, and the end with the last', async (t) => {
  const { run, receipt, find } = await aStore(t)
  await receipt('a', { readLimit: 2 })
  await receipt('b', { readLimit: 2 })
  await run(noteRead('a', T + 1))
  const once = await find('a')
  assert.deepEqual([once.reads_spent, once.ended_at], [1, T + 9 * MINUTE])
  await run(noteRead('a', T + MINUTE + 59_999))
  const twice = await find('a')
  assert.deepEqual([twice.reads_spent, twice.ended_at], [2, T + MINUTE])
  assert.equal(twice.reads, `${T + MINUTE} ${T} `)
  assert.deepEqual([(await find('b')).reads_spent, (await find('b')).reads], [0, ''])
  await assert.rejects(run(noteRead('none', T)), UnitRefused)
})

test('a WHISPER is noted as destroyed once, before its end', async (t) => {
  const { run, receipt, find } = await aStore(t)
  await receipt('a')
  await receipt('b')
  await assert.rejects(run(noteDestroyed('a', T + 9 * MINUTE)), UnitRefused)
  await run(noteDestroyed('a', T + 5))
  assert.deepEqual([(await find('a')).ended_at, (await find('a')).was_destroyed], [T + 5, 1])
  assert.deepEqual(
    [(await find('b')).ended_at, (await find('b')).was_destroyed],
    [T + 9 * MINUTE, 0],
  )
  await assert.rejects(run(noteDestroyed('a', T + 5)), UnitRefused)
})

test('a receipt lives until its end, to the millisecond', async (t) => {
  const { run, receipt } = await aStore(t)
  await receipt('a')
  await run(livingReceipt('a', T + 9 * MINUTE - 1))
  await assert.rejects(run(livingReceipt('a', T + 9 * MINUTE)), UnitRefused)
  await assert.rejects(run(livingReceipt('none', T)), UnitRefused)
})

test('receipts are forgotten after their end, some at a time, and those that are not named stay', async (t) => {
  const { db, run, receipt } = await aStore(t)
  for (const name of ['a', 'b', 'c']) await receipt(name)
  await run(noteDestroyed('a', T + 1), noteDestroyed('b', T + 2))
  assert.deepEqual(await endedReceipts(db, T + 1, 9), ['a'])
  assert.equal((await endedReceipts(db, T + 2, 1)).length, 1)
  await run(dropReceipts(['a', 'b']))
  assert.deepEqual(await db.read('select public_id from whisper_receipt'), [{ public_id: 'c' }])
})

test('a receipt says since when its own WHISPER is suspended, also once that is gone', async (t) => {
  const { db, run, sell, receipt, find } = await aStore(t)
  await sell('a')
  await sell('b')
  for (const name of ['a', 'b']) await receipt(name)
  await run({ text: `update whisper set suspended_at = 5 where public_id = 'a'`, values: [] })
  assert.equal((await find('a')).suspended_at, 5)
  assert.equal((await find('b')).suspended_at, null)
  await run(...dropWhisper('b'))
  assert.equal((await find('b')).public_id, 'b')
  assert.equal(await findReceipt(db, 'none'), null)
})

type Sold = Partial<Parameters<typeof insertWhisper>[0]>

const whisper = (name: string, some: Sold = {}) =>
  insertWhisper({
    public_id: name,
    order_id: `order of ${name}`,
    read_token_hash: new Uint8Array([7]),
    reads_left: 3,
    reveal_at: null,
    expires_at: T + MINUTE,
    has_receipt: 0,
    has_switch: 0,
    ...some,
  })

/** What is sold here has its own name as its bytes. */
async function aStore(t: After) {
  const db = await aDatabase(t)
  const run = (...statements: Parameters<typeof unit>) => db.write(unit(...statements))

  async function reserve(name: string): Promise<void> {
    const reserved = { orderId: `order of ${name}`, clientNetwork: 'n' }
    await run(...reserveCiphertext({ ...reserved, ciphertext: Buffer.from(name) }, LIMITS))
  }

  return {
    db,
    run,
    reserve,
    store: createWhisperStore(db),
    async sell(name: string, some: Sold = {}) {
      await reserve(name)
      await run(...whisper(name, some))
    },
    async spend(name: string, now = T) {
      const statements = spendRead({ public_id: name, has_receipt: 0 }, now)
      const { bytes } = await db.write({ lockKey: name, statements })
      return {
        bytes: Buffer.from(bytes[0]?.ciphertext as Uint8Array).toString(),
        reads: bytes.length,
      }
    },
    async left() {
      const rows = await db.read('select public_id, reads_left from whisper order by public_id')
      return Object.fromEntries(rows.map((row) => [row.public_id, row.reads_left]))
    },
    async ciphertexts() {
      const rows = await db.read('select ciphertext from whisper_ciphertext order by order_id')
      return rows
        .map(({ ciphertext }) => Buffer.from(ciphertext as Uint8Array).toString())
        .toSorted()
    },
    receipt: (name: string, { readLimit = 5 } = {}) =>
      run(
        insertReceipt({
          public_id: name,
          receipt_token_hash: new Uint8Array([8]),
          read_limit: readLimit,
          reveal_at: null,
          created_at: T,
          expires_at: T + 9 * MINUTE,
        }),
      ),
    find: async (name: string) => (await findReceipt(db, name)) ?? assert.fail('it is gone'),
  }
}
