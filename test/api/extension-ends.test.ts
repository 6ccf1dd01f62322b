/** What happens to an extension when its target ends or changes between the quote and the payment. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { aWorld, put } from '../support/alerts.ts'
import { phraseOf } from '../support/answer.ts'
import { pollExtension as poll, quoteOf } from '../support/buying.ts'
import { anInbox, send } from '../support/catch.ts'
import {
  endIn,
  extend,
  type Held,
  paidExtension,
  SPARK_MS,
  statusOf,
} from '../support/extension.ts'
import { type After, jsonFile } from '../support/folder.ts'
import { aMonitor, live, ping } from '../support/pulse.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { query } from '../support/store.ts'
import { suspendAt } from '../support/takedown.ts'

const HOUR = 60 * 60_000

/** Sells inboxes that take two requests, and monitors that take two pings. */
async function aShortServer(t: After): Promise<TestServer> {
  const plans = {
    catch: { spark: { requestLimit: 2 } },
    pulse: { spark: { heartbeatLimit: 2 } },
  }
  return startServer(t, { MAYFLY_CATALOG: await jsonFile(t, plans) })
}

const heldOf = {
  inbox: (server: TestServer): Promise<Held> => anInbox(server),
  monitor: (server: TestServer): Promise<Held> => aMonitor(server),
}

async function useUp(server: TestServer, held: Held): Promise<void> {
  for (let i = 0; i < 2; i++) {
    if (held.product === 'catch') await send(server, held, { method: 'POST' })
    else await ping(server, held as Held & { pingToken: string })
  }
}

/** A limit of any capability; the table has no other one. */
const setLimit = (server: TestServer, column: string, value: number) => {
  const table = column === 'heartbeat_limit' ? 'pulse_monitor' : 'catch_inbox_use'
  return query(server, `update ${table} set ${column} = $1 returning expires_at`, value)
}

/** Limits with which one more plan still fits below 2^53, and two do not. */
const NEARLY_FULL: [what: keyof typeof heldOf, column: string, limit: number][] = [
  ['inbox', 'request_limit', Number.MAX_SAFE_INTEGER - 3],
  ['inbox', 'storage_limit_bytes', Number.MAX_SAFE_INTEGER - 6 * 1024 * 1024],
  ['monitor', 'heartbeat_limit', Number.MAX_SAFE_INTEGER - 3],
]

/** Ways in which a capability ends, or has all that a number in JSON can say. */
const ENDS: [what: keyof typeof heldOf, how: string, end: typeof useUp][] = [
  ['inbox', 'is used up', useUp],
  ['monitor', 'is used up', useUp],
  ['inbox', 'is suspended', (server, { publicId }) => suspendAt(server, publicId)],
  ...NEARLY_FULL.map(([what, column]): (typeof ENDS)[number] => [
    what,
    `has the largest ${column}`,
    async (server) => void (await setLimit(server, column, Number.MAX_SAFE_INTEGER)),
  ]),
]

for (const [what, how, end] of ENDS) {
  test(`extending a ${what} that ${how}: it is refused, and who was quoted before gets a new one`, async (t) => {
    const server = await aShortServer(t)
    const held = await heldOf[what](server)
    const key = randomUUID()
    const { orderId, bolt11 } = quoteOf(await extend(server, held, { key }))
    await end(server, held)
    assert.equal(phraseOf(await extend(server, held)), '409 cannot be extended')
    assert.deepEqual(
      await query(server, 'select order_id from purchase_order where extends_id is not null'),
      [{ order_id: orderId }],
      'no invoice is made',
    )
    const proof = { 'idempotency-key': key, 'payment-preimage': await server.pay(bolt11) }
    const { resource } = JSON.parse((await poll(server, orderId, proof)).text)
    assert.equal(resource.product, held.product)
    assert.notEqual(resource.publicId, held.publicId)
    assert.ok(await statusOf(server, resource))
    assert.equal((await statusOf(server, held))?.expiresAt, held.expiresAt)
  })
}

test('an inbox takes more requests once it is extended, and keeps those that it has', async (t) => {
  const server = await aShortServer(t)
  const held = await anInbox(server)
  await send(server, held, { method: 'POST', body: 'first' })
  const { orderId } = await paidExtension(server, held)
  endIn(await poll(server, orderId))
  const answers = []
  for (const body of ['second', 'third', 'fourth', 'fifth']) {
    answers.push((await send(server, held, { method: 'POST', body })).status)
  }
  assert.deepEqual(answers, [204, 204, 204, 401])
  server.clock.advance(1.5 * SPARK_MS)
  const events = []
  for await (const event of server.mayfly.catch(held).events()) events.push(event)
  assert.equal(events.length, 4)
})

describe('extending a monitor', () => {
  test('an extended monitor keeps its deadlines, its pings and its settings', async (t) => {
    const server = await startServer(t)
    const monitor = await aMonitor(server)
    const client = server.mayfly.pulse(monitor)
    await client.update({ name: 'backup', expectedIntervalSeconds: 600, graceSeconds: 60 })
    await ping(server, monitor)
    const before = await client.status()
    const { orderId } = await paidExtension(server, monitor)
    const expiresAt = endIn(await poll(server, orderId))
    const { heartbeatLimit, remainingHeartbeats } = before
    assert.deepEqual(await client.status(), {
      ...before,
      expiresAt,
      heartbeatLimit: 2 * heartbeatLimit,
      remainingHeartbeats: remainingHeartbeats + heartbeatLimit,
    })
  })

  test('an extended monitor tells whoever follows it', async (t) => {
    const server = await startServer(t)
    const monitor = await aMonitor(server)
    const follow = server.mayfly.pulse(monitor).stream()
    t.after(() => follow.return(''))
    await follow.next()
    const { orderId } = await paidExtension(server, monitor)
    const { value } = await follow.next()
    assert.ok(typeof value === 'object')
    assert.equal(value.status.expiresAt, endIn(await poll(server, orderId)))
  })

  test('an extended monitor says again that it ends soon, before its new end', async (t) => {
    const { server, monitor, receiver } = await aWorld(t)
    await put(server, monitor, [{ url: receiver.url }])
    await server.mayfly.pulse(monitor).update({ expectedIntervalSeconds: 604_800 })
    await ping(server, monitor)
    await live(server, 22 * HOUR)
    await receiver.until('pulse.expiring')
    const { orderId } = await paidExtension(server, monitor)
    const end = endIn(await poll(server, orderId))
    receiver.received.length = 0
    await live(server, 22 * HOUR)
    const [told] = await receiver.until('pulse.expiring')
    assert.ok(told?.body.data)
    assert.ok(server.now() > Date.parse(end) - 5 * HOUR)
  })

  test('an extended monitor is late by its own deadline after its first end', async (t) => {
    const server = await startServer(t)
    const monitor = await aMonitor(server)
    const client = server.mayfly.pulse(monitor)
    await client.update({ expectedIntervalSeconds: 24 * 3600, graceSeconds: 60 })
    await live(server, 23 * HOUR)
    await ping(server, monitor)
    const { orderId } = await paidExtension(server, monitor)
    endIn(await poll(server, orderId))
    await live(server, 23 * HOUR)
    assert.equal((await client.status()).state, 'operational')
    await live(server, 24.5 * HOUR - 23 * HOUR)
    assert.equal((await client.status()).state, 'late')
  })

  test('an extended monitor can hold a secret shut that lasts longer than the monitor did', async (t) => {
    const server = await startServer(t)
    const monitor = await aMonitor(server)
    const client = server.mayfly.pulse(monitor)
    await ping(server, monitor)
    const { switchId } = await client.makeSwitch()
    const buy = () =>
      server.mayfly.buyWhisper({
        planId: 'spark',
        data: Buffer.from('the letter'),
        revealWhen: switchId,
        onInvoice: ({ bolt11 }) => server.pay(bolt11),
      })
    await assert.rejects(buy(), { phrase: 'invalid switch' })
    const { orderId } = await paidExtension(server, monitor)
    endIn(await poll(server, orderId))
    const sent = await buy()
    assert.ok(sent.publicId)
  })
})

test('a suspended monitor is hidden from its owner, and one that is suspended before the payment is replaced', async (t) => {
  const server = await startServer(t)
  const monitor = await aMonitor(server)
  const key = randomUUID()
  const { orderId, bolt11 } = quoteOf(await extend(server, monitor, { key }))
  await suspendAt(server, monitor.publicId)
  assert.equal(phraseOf(await extend(server, monitor)), '404 not found')
  const proof = { 'idempotency-key': key, 'payment-preimage': await server.pay(bolt11) }
  const { resource } = JSON.parse((await poll(server, orderId, proof)).text)
  assert.notEqual(resource.publicId, monitor.publicId)
})

for (const [what, column, limit] of NEARLY_FULL) {
  test(`no extension takes the ${column} of the ${what} beyond what a number in JSON can say, whatever is quoted already`, async (t) => {
    const server = await aShortServer(t)
    const held = await heldOf[what](server)
    await setLimit(server, column, limit)
    const quote = quoteOf(await extend(server, held))
    // Paid, the open quote leaves no room for another plan.
    assert.equal(phraseOf(await extend(server, held)), '409 cannot be extended')
    await server.pay(quote.bolt11)
    endIn(await poll(server, quote.orderId))
    assert.equal(phraseOf(await extend(server, held)), '409 cannot be extended')
    const [row] = await query(server, 'select count(*) as count from simulator_invoice')
    assert.equal(Number(row?.count), 2)
  })
}
