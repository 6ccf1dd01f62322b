import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { idempotencyKey, openOrder, poll, purchase } from '../support/buying.ts'
import { anInbox, send } from '../support/catch.ts'
import { aMonitor, live } from '../support/pulse.ts'
import { scrape } from '../support/scrape.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { query } from '../support/store.ts'
import { aWhisper, openWhisperOrder, read } from '../support/whisper.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const YEAR = 365 * DAY
/** The purges' own interval, and a little more. */
const PURGE = 31_000

/** What is lost when a clock that is wrong deletes. */
const KEPT = [
  'select count(*) as n from purchase_order',
  'select count(*) as n from purchase_order where seed is not null',
  'select count(*) as n from catch_inbox',
  'select count(*) as n from catch_event',
  'select count(*) as n from whisper',
  'select count(*) as n from whisper_ciphertext',
  'select count(*) as n from whisper_reservation',
  'select count(*) as n from pulse_monitor',
]

const kept = async (server: TestServer): Promise<unknown[]> =>
  Promise.all(KEPT.map(async (text) => Number((await query(server, text))[0]?.n)))

const pollOf = (server: TestServer, { orderId, key }: { orderId: string; key: string }) =>
  poll(server, orderId, idempotencyKey(key))

/** Everything that somebody has paid for, or is about to. */
async function aFullStore(t: TestContext) {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const server = await startServer(t)
  const inbox = await anInbox(server)
  assert.equal((await send(server, inbox, { method: 'POST', body: 'x' })).status, 204)
  const monitor = await aMonitor(server)
  await aWhisper(server)
  const uncollected = await openOrder(server)
  await server.pay(uncollected.bolt11)
  const key = crypto.randomUUID()
  const unpaid = { ...(await openWhisperOrder(server, { key })), key }
  return { server, inbox, monitor, uncollected, unpaid }
}

suite('a clock that jumps', () => {
  for (const jump of [HOUR, 40 * DAY, 20 * YEAR, -YEAR]) {
    test(`a clock that jumps by ${jump / HOUR} hours deletes nothing that is paid for, nor what waits for its payment`, async (t) => {
      const { server, inbox, monitor, uncollected, unpaid } = await aFullStore(t)
      // Settled by the stream, and never asked for.
      for (;;) {
        const [row] = await query(
          server,
          `select count(*) as n from purchase_order where state = 'settled'`,
        )
        if (Number(row?.n) === 4) break
      }
      const before = await kept(server)
      server.clock.jump(jump)
      t.mock.timers.tick(PURGE)
      const answer = await pollOf(server, unpaid)
      // Nothing final happens in a hold: the order is open.
      if (jump > 0) assert.equal(answer.status, 402)
      // And the next start, whose clock is as wrong.
      await server.restart()
      t.mock.timers.tick(PURGE)
      await server.restart()
      assert.deepEqual(await kept(server), before)
      assert.ok(server.logged.some((line) => line.includes('"event":"clock.reanchored"')))
      assert.ok(!server.logged.some((line) => line.includes('"event":"product.purged"')))

      server.clock.jump(-jump)
      t.mock.timers.tick(PURGE)
      await server.restart()
      assert.deepEqual(await kept(server), before)
      assert.equal((await server.mayfly.catch(inbox).status()).status, 'active')
      assert.equal((await server.mayfly.catch(inbox).page()).events.length, 1)
      assert.equal((await server.mayfly.pulse(monitor).status()).state, 'waiting')
      assert.equal((await pollOf(server, uncollected)).status, 200)
    })
  }

  test('a clock that goes back sells and settles nothing for as long as it went back', async (t) => {
    const { server, unpaid } = await aFullStore(t)
    server.clock.jump(-5 * MINUTE)
    const { status, text } = await purchase(server)
    assert.deepEqual([status, text], [503, '{"error":"checkout unavailable"}'])
    await server.pay(unpaid.bolt11)
    assert.equal((await pollOf(server, unpaid)).status, 503)
    await live(server, 5 * MINUTE)
    await openOrder(server)
    assert.equal((await pollOf(server, unpaid)).status, 200)
  })

  test('a secret with a time is not revealed while the clock is held, even if its time has come', async (t) => {
    const { server } = await aFullStore(t)
    const revealAt = new Date(server.now() + HOUR).toISOString()
    const whisper = await aWhisper(server, { revealAt })
    server.clock.jump(2 * HOUR)
    assert.equal((await read(server, whisper)).status, 425)
    await live(server, 16 * MINUTE)
    assert.equal((await read(server, whisper)).status, 200)
  })

  test('a clock that jumped says what has expired, and deletes it once the hold is over, but what was destroyed before', async (t) => {
    const { server, inbox } = await aFullStore(t)
    const destroyed = await anInbox(server)
    await send(server, destroyed, { method: 'POST', body: 'x' })
    await server.mayfly.catch(destroyed).destroy()
    server.clock.jump(40 * DAY)
    assert.equal((await server.mayfly.catch(inbox).status()).status, 'expired')
    await server.beat()
    await live(server, 14 * MINUTE)
    t.mock.timers.tick(PURGE)
    await server.restart()
    assert.equal((await query(server, 'select public_id from whisper')).length, 1)
    const events = 'select public_id from catch_event join catch_inbox on number = inbox'
    assert.deepEqual(await query(server, events), [{ public_id: inbox.publicId }])
    await live(server, MINUTE)
    t.mock.timers.tick(PURGE)
    await server.restart()
    assert.deepEqual(await query(server, 'select public_id from catch_inbox'), [])
    assert.deepEqual(await query(server, 'select public_id from whisper'), [])
  })

  test('a clock that jumps is reported to whoever scrapes the metrics', async (t) => {
    const server = await startServer(t, { MAYFLY_METRICS_PORT: '0' })
    const told = async () => {
      const { series } = await scrape(server)
      const names = ['clock_reanchors_total', 'clock_held', 'checkout_open']
      return names.map((name) => series.get(`mayfly_${name}`))
    }
    assert.deepEqual(await told(), [0, 0, 1])
    server.clock.jump(DAY)
    await server.beat()
    assert.deepEqual(await told(), [1, 1, 1])
    server.clock.jump(-DAY)
    await server.beat()
    assert.deepEqual(await told(), [2, 1, 0])
  })
})
