import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import type { WhisperReceipt } from '../../src/client/index.ts'
import { tokenOf } from '../../src/lib/ids.ts'
import { NOT_FOUND } from '../support/answer.ts'
import { startServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { query } from '../support/store.ts'
import { until } from '../support/until.ts'
import {
  aWhisper,
  mayflyError,
  type Purchase,
  purchaseWhisper,
  read,
  refusal,
  type Shop,
  short,
} from '../support/whisper.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
/** The server looks for what is over this often. */
const PURGE = 30_000
const RECEIPT = { 'x-whisper-receipt': 'on' }

const sent = (shop: Shop, ask: Purchase = {}) =>
  aWhisper(shop, { ...ask, headers: { ...RECEIPT, ...ask.headers } })

const minuteOf = (time: number) => new Date(time - (time % MINUTE)).toISOString()

suite('the receipt of a whisper', () => {
  const theServer = shareServer()

  test('the buyer learns the minute of each read and of the end and how many are left, and nothing else of the reader', async () => {
    const server = await theServer()
    const whisper = await sent(server, { readLimit: 3 })
    const receipt = server.mayfly.whisperReceipt(whisper)
    const before = await receipt.status()
    assert.deepEqual(before, {
      publicId: whisper.publicId,
      state: 'active',
      readLimit: 3,
      readsSpent: 0,
      readsLeft: 3,
      reads: [],
      revealAt: null,
      createdAt: before.createdAt,
      expiresAt: whisper.expiresAt,
      endedAt: null,
      switch: null,
    })
    server.beginMinute()
    const minutes = []
    for (const _ of [1, 2]) {
      minutes.unshift(minuteOf(server.now()))
      assert.equal((await read(server, whisper)).status, 200)
      server.clock.advance(MINUTE)
    }
    assert.deepEqual(await receipt.status(), {
      ...before,
      readsSpent: 2,
      readsLeft: 1,
      reads: minutes,
    })
    const minute = minuteOf(server.now())
    await read(server, whisper)
    assert.deepEqual(
      await receipt.status(),
      {
        ...before,
        state: 'exhausted',
        readsSpent: 3,
        readsLeft: 0,
        reads: [minute, ...minutes],
        endedAt: minute,
      },
      'the end is no sharper than a minute',
    )
    assert.deepEqual(short(await read(server, whisper)), NOT_FOUND)
  })

  test('destroying deletes the bytes at once, happens once, and stays on the receipt', async () => {
    const server = await theServer()
    const whisper = await sent(server)
    await read(server, whisper)
    const receipt = server.mayfly.whisperReceipt(whisper)
    const outcomes = await Promise.allSettled(Array.from({ length: 10 }, () => receipt.destroy()))
    assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
    assert.deepEqual(short(await read(server, whisper)), NOT_FOUND)
    const { state, readsSpent, readsLeft, endedAt } = await receipt.status()
    assert.deepEqual(
      { state, readsSpent, readsLeft },
      { state: 'destroyed', readsSpent: 1, readsLeft: 0 },
    )
    assert.ok(endedAt !== null && Date.parse(endedAt) <= server.now())
    assert.deepEqual(
      await query(
        server,
        `select order_id from whisper_ciphertext where order_id in
          (select order_id from purchase_order where public_id = '${whisper.publicId}')`,
      ),
      [],
    )
  })

  test('reading and destroying at once: each read that was answered is on the receipt', async () => {
    const server = await theServer()
    const whisper = await sent(server, { plan: 'standard' })
    const receipt = server.mayfly.whisperReceipt(whisper)
    const [answers] = await Promise.all([
      Promise.all(Array.from({ length: 15 }, () => read(server, whisper))),
      receipt.destroy(),
    ])
    const answered = answers.filter(({ status }) => status === 200).length
    assert.equal((await receipt.status()).readsSpent, answered)
  })

  test('without the header the capability and its reads are as they were, and nobody opens a receipt', async () => {
    const server = await theServer()
    for (const headers of [{}, { 'x-whisper-receipt': 'off' }]) {
      const whisper = await aWhisper(server, { headers })
      assert.deepEqual(Object.keys(whisper).sort(), [
        'expiresAt',
        'product',
        'publicId',
        'readToken',
      ])
      assert.equal((await read(server, whisper)).status, 200)
      const receiptToken = tokenOf('whisper_receipt', new Uint8Array(32))
      const receipt = server.mayfly.whisperReceipt({ ...whisper, receiptToken })
      await assert.rejects(receipt.status(), mayflyError('not found', 404))
      await assert.rejects(receipt.destroy(), mayflyError('not found', 404))
    }
  })

  test('the first use of the receipt token ends the repeats of the sale, like that of any token', async () => {
    const server = await theServer()
    const key = randomUUID()
    const whisper = await sent(server, { key })
    await server.mayfly.whisperReceipt(whisper).status()
    const again = await purchaseWhisper(server, { key, headers: RECEIPT })
    assert.deepEqual(short(again), { status: 404, text: '{"error":"already delivered"}' })
  })

  test('any other value of the header is refused before there is an invoice', async () => {
    const server = await theServer()
    for (const value of ['', 'On', 'true', 'on, on', ['on', 'on']]) {
      const answer = await purchaseWhisper(server, { headers: { 'x-whisper-receipt': value } })
      assert.deepEqual(short(answer), refusal('invalid receipt option'), String(value))
    }
  })
})

test('a receipt says how it ended until a day after the end, and then it is gone with its row and its binding', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const server = await startServer(t)
  const [expired, exhausted] = [await sent(server), await sent(server, { readLimit: 1 })]
  await read(server, exhausted)
  await query(
    server,
    `insert into reveal_binding (order_id, monitor_id, monitor_ends_at, reserved_at, timing, public_id)
     values ('an order', 'a monitor', 0, 0, '', $1)`,
    expired.publicId,
  )
  const states = () =>
    Promise.all([expired, exhausted].map((one) => stateOf(server.mayfly.whisperReceipt(one))))
  server.clock.advance(DAY - MINUTE)
  t.mock.timers.tick(PURGE)
  assert.deepEqual(await states(), ['active', 'exhausted'])
  server.clock.advance(2 * MINUTE)
  t.mock.timers.tick(PURGE)
  assert.deepEqual(await states(), ['expired', 'not found'])
  server.clock.advance(DAY)
  assert.deepEqual(await states(), ['not found', 'not found'])
  await until('the purge', async () => {
    t.mock.timers.tick(PURGE)
    return (await query(server, 'select public_id from whisper_receipt')).length === 0
  })
  assert.deepEqual(await query(server, 'select public_id from reveal_binding'), [])
})

async function stateOf(receipt: { status(): Promise<WhisperReceipt> }): Promise<string> {
  return receipt.status().then(
    ({ state }) => state,
    (error: { phrase: string }) => error.phrase,
  )
}
