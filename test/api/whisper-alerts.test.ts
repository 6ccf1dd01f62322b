/** What destinations are told of a whisper: each read, some time later, and what becomes of what waits. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { WhisperCapability } from '../../src/client/index.ts'
import { anInbox } from '../support/catch.ts'
import type { After } from '../support/folder.ts'
import { aReceiver, verified } from '../support/receiver.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { query } from '../support/store.ts'
import { until } from '../support/until.ts'
import { aWhisper, mayflyError, type Purchase, read } from '../support/whisper.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
/** The server looks for what is over this often. */
const PURGE = 30_000
const RECEIPT = { 'x-whisper-receipt': 'on' }

/** A whisper whose reads are told to a receiver. */
async function aTold(t: After, ask: Purchase = {}, environment: Record<string, string> = {}) {
  const receiver = await aReceiver(t)
  const server = await startServer(t, { MAYFLY_ALLOWED_HOSTS: receiver.host, ...environment })
  // Nothing is told of what others read.
  await aWhisper(server, { readLimit: 2, headers: RECEIPT })
  const whisper = await aWhisper(server, { ...ask, headers: { ...RECEIPT, ...ask.headers } })
  const receipt = server.mayfly.whisperReceipt(whisper)
  const { destinations } = await receipt.setAlerts({ destinations: [{ url: receiver.url }] })
  assert.equal(destinations[0]?.state, 'active')
  return { receiver, server, whisper, receipt, secret: destinations[0]?.secret ?? '' }
}

async function reads(server: TestServer, whisper: WhisperCapability, count = 1): Promise<void> {
  for (let i = 0; i < count; i++) assert.equal((await read(server, whisper)).status, 200)
}

const waiting = (server: TestServer) =>
  query(server, 'select * from alert where done_at is null order by position')

test('a read is told with the minute and the reads that are spent and left, signed, and with nothing that opens anything', async (t) => {
  const { receiver, server, whisper, secret } = await aTold(t, { readLimit: 3 })
  const [tested] = receiver.received
  assert.deepEqual([tested?.body.type, tested?.body.data?.publicId], ['test', whisper.publicId])
  const minute = server.beginMinute()
  await reads(server, whisper)
  server.clock.advance(2 * MINUTE)
  const [told] = await receiver.until('whisper.read')
  assert.ok(told)
  assert.deepEqual(verified(told, secret), told.body)
  assert.deepEqual(told.body, {
    type: 'whisper.read',
    timestamp: new Date(minute).toISOString(),
    data: { publicId: whisper.publicId, readsSpent: 1, readsLeft: 2 },
  })
  const all = JSON.stringify(receiver.received)
  for (const one of [whisper.readToken, whisper.receiptToken ?? '', '127.0.0.1:']) {
    assert.ok(one !== '' && !all.replaceAll(receiver.host, '').includes(one), one)
  }
})

test('a read before the reveal time, with a wrong token, or of a whisper without destinations tells nobody', async (t) => {
  const revealAt = new Date(Date.now() + DAY / 2).toISOString()
  const { server, whisper } = await aTold(t, { revealAt })
  assert.equal((await read(server, whisper)).status, 425)
  assert.equal((await read(server, { ...whisper, readToken: null })).status, 404)
  const other = await aWhisper(server, { headers: RECEIPT })
  await reads(server, other)
  assert.deepEqual(await waiting(server), [])
})

test('each of many reads at once is counted, and the sum of the last message is right', async (t) => {
  const { receiver, server, whisper } = await aTold(t, { plan: 'standard', readLimit: 40 })
  const answers = await Promise.all(Array.from({ length: 50 }, () => read(server, whisper)))
  assert.equal(answers.filter(({ status }) => status === 200).length, 40)
  assert.ok((await waiting(server)).length <= 20)
  const sum = await until('the last one', () => {
    server.clock.advance(MINUTE)
    return receiver.received.find(({ body }) => body.data?.readsLeft === 0)
  })
  assert.equal(sum.body.data?.readsSpent, 40)
})

test('a whisper that expires says so once, after the reads before it', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { receiver, server, whisper } = await aTold(t, { readLimit: 3 })
  const expiresAt = Date.parse(whisper.expiresAt)
  server.clock.advance(expiresAt - server.now() - 10_000)
  await reads(server, whisper)
  server.clock.advance(20_000)
  await until('the purge', async () => {
    t.mock.timers.tick(PURGE)
    return (await waiting(server)).length === 2
  })
  const [expired] = await until('the message', () => {
    server.clock.advance(MINUTE)
    t.mock.timers.tick(1_000)
    const some = receiver.received.filter(({ body }) => body.type === 'whisper.expired')
    return some.length > 0 && some
  })
  assert.deepEqual(expired?.body, {
    type: 'whisper.expired',
    timestamp: whisper.expiresAt,
    data: { publicId: whisper.publicId, readsSpent: 1, readsLeft: 0 },
  })
  assert.deepEqual(
    receiver.received.map(({ body }) => body.type),
    ['test', 'whisper.read', 'whisper.expired'],
  )
})

test('a whisper whose last read is told does not expire besides', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { receiver, server, whisper } = await aTold(t, { readLimit: 1 })
  await reads(server, whisper)
  server.clock.advance(2 * MINUTE)
  t.mock.timers.tick(1_000)
  await receiver.until('whisper.read')
  server.clock.advance(DAY)
  t.mock.timers.tick(PURGE)
  await until('the purge', async () => {
    t.mock.timers.tick(PURGE)
    const kept = await query(server, 'select public_id from whisper_receipt')
    return kept.every(({ public_id }) => public_id !== whisper.publicId)
  })
  assert.deepEqual(await query(server, 'select type from alert'), [])
})

describe('what goes with the destinations of a whisper', () => {
  const rowsOf = async (server: TestServer) => [
    ...(await query(server, 'select destination_id from alert_destination')),
    ...(await query(server, 'select destination_id from alert')),
  ]

  test('a whisper that is destroyed takes its destinations with it, and what waits for them', async (t) => {
    const { server, whisper, receipt } = await aTold(t)
    await reads(server, whisper)
    assert.equal((await rowsOf(server)).length, 2)
    await receipt.destroy()
    assert.deepEqual(await rowsOf(server), [])
  })

  test('a receipt that is forgotten takes its destinations with it', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { server, whisper } = await aTold(t, { readLimit: 1 })
    await reads(server, whisper)
    server.clock.advance(DAY + 2 * MINUTE)
    await until('the purge', async () => {
      t.mock.timers.tick(PURGE)
      return (await rowsOf(server)).length === 0
    })
  })
})

describe('who sets the destinations of a whisper', () => {
  test('the receipt token does only while the whisper lives, and shows them after it', async (t) => {
    const { receiver, server, whisper, receipt } = await aTold(t, { readLimit: 1 })
    const destinations = [{ url: receiver.url }]
    await reads(server, whisper)
    await assert.rejects(receipt.setAlerts({ destinations }), mayflyError('not found', 404))
    const { destinations: shown, deliveries } = await receipt.alerts()
    assert.deepEqual(
      [shown.map(({ state }) => state), deliveries.map(({ type }) => type)],
      [['active'], ['whisper.read']],
    )
  })

  test('a destination is refused by the same rules as that of a monitor, and an inbox is told too', async (t) => {
    const { receiver, server, whisper, receipt } = await aTold(t, {}, { MAYFLY_RATE_LIMITS: 'on' })
    await assert.rejects(
      receipt.setAlerts({ destinations: [{ url: 'https://10.0.0.1/' }] }),
      mayflyError('invalid destinations', 400),
    )
    const inbox = await anInbox(server)
    const { publicId, ingestToken } = inbox
    await receipt.setAlerts({ destinations: [{ inbox: publicId, ingestToken }] })
    await reads(server, whisper)
    server.clock.advance(2 * MINUTE)
    const body = await until('the alert in the inbox', async () => {
      const events = await Array.fromAsync(server.mayfly.catch(inbox).events())
      return events.find((event) => event.body.includes('whisper.read'))?.body
    })
    assert.equal(JSON.parse(body).data.publicId, whisper.publicId)
    const set = (path: string) =>
      receipt.setAlerts({ destinations: [{ url: `${receiver.url}/${path}` }] })
    for (const path of ['1', '2', '3']) await set(path)
    await assert.rejects(set('4'), mayflyError('rate limited', 429))
  })

  test('an operator who has switched alerts off has none set, and reads go on', async (t) => {
    const server = await startServer(t, { MAYFLY_OUTBOUND: 'off' })
    const whisper = await aWhisper(server, { headers: RECEIPT })
    await assert.rejects(
      server.mayfly.whisperReceipt(whisper).setAlerts({ destinations: [] }),
      mayflyError('alerts unavailable', 503),
    )
    await reads(server, whisper)
  })
})
