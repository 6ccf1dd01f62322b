/**
 * What one service promises, kept by two on one PostgreSQL: any request may meet either. Of orders and of GATE that is told
 * where test/payment and test/gate have another instance, of extensions in test/api/extension.test.ts, and of limits in
 * test/http/shared-limits.postgres.ts.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import type {
  CatchCapability,
  EventPage,
  PaymentQuote,
  PulseCapability,
} from '../../src/client/index.ts'
import { idempotencyKey, poll, purchase, quoteOf } from '../support/buying.ts'
import { extend, SPARK_MS } from '../support/extension.ts'
import { temporaryFolder } from '../support/folder.ts'
import { type Fleet, twoInstances } from '../support/instances.ts'
import { aPostgresDatabase } from '../support/postgres.ts'
import { delivered, openWhisperOrder, read } from '../support/whisper.ts'

const EVENTS = 1_000
const BEATS = 10

suite('two instances, whatever is split across them', () => {
  test('one of 40 readers gets the bytes where one read is left', async (t) => {
    const fleet = await aFleet(t)
    const quote = await openWhisperOrder(fleet.a, { readLimit: 1 })
    await fleet.pay(quote)
    const whisper = await delivered(fleet.b, quote)
    const reads = await times(40, () => read(fleet.next(), whisper))
    assert.deepEqual(counted(reads), { 200: 1, 404: 39 })
  })

  test('exactly as many events are stored as there is room for, however many send', async (t) => {
    const fleet = await aFleet(t, { catch: { spark: { requestLimit: 100 } } })
    const inbox = await anInbox(fleet)
    const answers = await times(200, () => send(fleet.next(), inbox, 'x'))
    assert.deepEqual(counted(answers), { 204: 100, 401: 100 })
    const status = await fleet.b.mayfly.catch(inbox).status()
    assert.equal(status.acceptedRequestCount, 100)
    assert.equal(status.status, 'exhausted')
    const { latestSequence } = await fleet.a.mayfly.catch(inbox).page()
    assert.equal(latestSequence, 100)
  })

  test('the first use of a token at one instance seals the answer at the other', async (t) => {
    const fleet = await aFleet(t)
    const key = randomUUID()
    const quote = quoteOf(await purchase(fleet.a, { key }))
    await fleet.pay(quote)
    const first = await poll(fleet.b, quote.orderId, idempotencyKey(key))
    const again = await poll(fleet.a, quote.orderId, idempotencyKey(key))
    assert.equal(again.text, first.text)
    await fleet.b.mayfly.catch(JSON.parse(first.text).resource).status()
    assert.deepEqual(counted([await poll(fleet.a, quote.orderId, idempotencyKey(key))]), { 404: 1 })
    assert.deepEqual(counted([await purchase(fleet.a, { key })]), { 404: 1 })
  })

  test('a monitor never counts more heartbeats than it was sold with', async (t) => {
    const fleet = await aFleet(t, { pulse: { spark: { heartbeatLimit: BEATS } } })
    const monitor = await aMonitor(fleet)
    const pings = await times(40, () => ping(fleet.next(), monitor))
    assert.deepEqual(counted(pings), { 204: BEATS, 404: 30 })
  })

  test('an inbox or a monitor that one instance has ended is over at the other, which remembers it', async (t) => {
    const fleet = await aFleet(t)
    const [inbox, monitor] = await Promise.all([anInbox(fleet), aMonitor(fleet)])
    const both = [fleet.a, fleet.b]
    const sent = await Promise.all(both.map((instance) => send(instance, inbox, 'x')))
    const pinged = await Promise.all(both.map((instance) => ping(instance, monitor)))
    assert.deepEqual(counted([...sent, ...pinged]), { 204: 4 })
    await fleet.a.mayfly.catch(inbox).destroy()
    await fleet.a.mayfly.pulse(monitor).destroy()
    assert.deepEqual(counted([await send(fleet.b, inbox, 'x')]), { 401: 1 })
    assert.deepEqual(counted([await ping(fleet.b, monitor)]), { 404: 1 })
    await assert.rejects(fleet.b.mayfly.catch(inbox).status(), { status: 404 })
    await assert.rejects(fleet.b.mayfly.pulse(monitor).status(), { status: 404 })
  })
})

suite('streams across instances', () => {
  test('every event of one instance comes once and in order at the other, though its line is cut', async (t) => {
    const fleet = await aFleet(t, { catch: { spark: { requestLimit: EVENTS } } })
    const inbox = await anInbox(fleet)
    const told = collect(fleet.b, inbox)
    for (let sent = 0; sent < EVENTS; sent += 20) {
      const answers = await times(20, () => send(fleet.a, inbox, 'x'))
      assert.deepEqual(counted(answers), { 204: 20 })
      if (sent % 300 === 100) await fleet.cut('mayfly hints')
    }
    assert.deepEqual(
      await told,
      Array.from({ length: EVENTS }, (_, i) => i + 1),
    )
    for (const { logged } of [fleet.a, fleet.b]) {
      assert.ok(logged.some((line) => line.includes('"hints.lost"')))
    }
  })

  test('an event is told when it comes, not when somebody looks', async (t) => {
    const fleet = await aFleet(t)
    const inbox = await anInbox(fleet)
    // By looking every 5 seconds these would take minutes.
    const signal = AbortSignal.timeout(240_000)
    const stream = fleet.b.mayfly.catch(inbox).stream({ after: 0, signal })
    for (let i = 1; i <= 60; i++) {
      await send(fleet.a, inbox, String(i))
      const { value } = await stream.next()
      assert.equal(typeof value === 'object' && value.body, String(i))
    }
    await stream.return('active')
  })

  test('an event ends a wait when it comes, and so does the end of the inbox', async (t) => {
    const fleet = await aFleet(t)
    const inbox = await anInbox(fleet)
    // By looking every 5 seconds these would take minutes.
    const signal = AbortSignal.timeout(240_000)
    const headers = { authorization: `Bearer ${inbox.ownerToken}` }
    const wait = (after: number) =>
      fetch(`${fleet.b.url}/api/catch/${inbox.publicId}/events?wait=30&after=${after}`, {
        signal,
        headers,
      })
    for (let after = 0; after < 60; after++) {
      const answer = wait(after)
      await send(fleet.a, inbox, String(after))
      const { events } = (await (await answer).json()) as EventPage
      assert.deepEqual(
        events.map(({ sequence }) => sequence),
        [after + 1],
      )
    }
    const last = wait(60)
    await fleet.a.mayfly.catch(inbox).destroy()
    assert.deepEqual(counted([await last]), { 401: 1 })
  })

  test('pings, settings, extensions and the end of a monitor are told', async (t) => {
    const fleet = await aFleet(t)
    const monitor = await aMonitor(fleet)
    const signal = AbortSignal.timeout(240_000)
    const stream = fleet.b.mayfly.pulse(monitor).stream({ signal })
    const next = async () => {
      const { value } = await stream.next()
      return typeof value === 'object' ? [value.event, value.status.name] : value
    }
    assert.deepEqual(await next(), ['state', ''])
    const onA = fleet.a.mayfly.pulse(monitor)
    await onA.ping()
    assert.deepEqual(
      [await next(), await next()],
      [
        ['ping', ''],
        ['state', ''],
      ],
    )
    for (let i = 0; i < 25; i++) {
      await onA.update({ name: `name ${i}` })
      assert.deepEqual(await next(), ['state', `name ${i}`])
    }
    const { bolt11, orderId } = quoteOf(await extend(fleet.a, monitor))
    await fleet.pay({ bolt11, orderId })
    const { value } = await stream.next()
    assert.ok(typeof value === 'object')
    assert.equal(Date.parse(value.status.expiresAt), Date.parse(monitor.expiresAt) + SPARK_MS)
    await onA.destroy()
    assert.equal(await next(), 'destroyed')
  })
})

/** Two instances on a database of their own, with changed plans. */
async function aFleet(
  t: TestContext,
  catalog: object = {},
  environment: Record<string, string> = {},
): Promise<Fleet> {
  const file = join(await temporaryFolder(t), 'catalog.json')
  await writeFile(file, JSON.stringify(catalog))
  return twoInstances(t, await aPostgresDatabase(), { MAYFLY_CATALOG: file, ...environment })
}

/** Quoted by the one, paid and collected at the other. */
async function bought(fleet: Fleet, target: string): Promise<unknown> {
  const quote: PaymentQuote = quoteOf(await purchase(fleet.a, { target }))
  await fleet.pay(quote)
  const answer = await poll(fleet.b, quote.orderId)
  assert.equal(answer.status, 200, answer.text)
  return JSON.parse(answer.text).resource
}

const anInbox = (fleet: Fleet): Promise<CatchCapability> =>
  bought(fleet, '/api/payments/catch') as Promise<CatchCapability>

const aMonitor = (fleet: Fleet): Promise<PulseCapability> =>
  bought(fleet, '/api/payments/pulse') as Promise<PulseCapability>

type Target = { url: string }

const send = ({ url }: Target, { publicId }: CatchCapability, body: string): Promise<Response> =>
  fetch(`${url}/c/${publicId}`, { method: 'POST', body })

const ping = ({ url }: Target, { publicId, pingToken }: PulseCapability): Promise<Response> =>
  fetch(`${url}/p/${publicId}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${pingToken}` },
  })

const times = <T>(many: number, ask: () => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: many }, ask))

/** How many answers have each status. */
function counted(answers: { status: number }[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

/** The sequences that a stream tells until it ends. */
async function collect(instance: Fleet['a'], inbox: CatchCapability): Promise<number[]> {
  const sequences: number[] = []
  for await (const { sequence } of instance.mayfly.catch(inbox).stream({ after: 0 })) {
    sequences.push(sequence)
  }
  return sequences
}
