/** What becomes of capabilities that the operator suspends and resumes, while the service runs. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { createEventParser, readEvents } from '../../src/client/event-stream.ts'
import type { CatchCapability, PulseCapability, SharedWhisper } from '../../src/client/index.ts'
import { POLL_EVERY_MS } from '../../src/http/streams.ts'
import { NOT_FOUND } from '../support/answer.ts'
import { poll, purchase, quoteOf } from '../support/buying.ts'
import { anInbox, ask } from '../support/catch.ts'
import { aMonitor, DONE, live, owner, ping, shared } from '../support/pulse.ts'
import { scrape } from '../support/scrape.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { query } from '../support/store.ts'
import { resumeAt, suspendAt } from '../support/takedown.ts'
import { until } from '../support/until.ts'
import { aWhisper, read, short, stored } from '../support/whisper.ts'
import { listen, sendMany } from './catch-stream.ts'
import { aSwitch, stateOf } from './reveal-switch.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const METRICS = { MAYFLY_METRICS_PORT: '0' }

suite('whoever waits', () => {
  test('a wait and a stream of a suspended inbox end within 5 seconds, without content', async (t) => {
    const server = await startServer(t, METRICS)
    const inbox = await anInbox(server)
    await sendMany(server, inbox, { count: 1, body: String })
    // No wait ends by itself.
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const stream = await listen(t, server, inbox)
    const answer = ask(server, `/api/catch/${inbox.publicId}/events?wait=30`, inbox.ownerToken)
    while ((await openStreams(server)) < 2);
    // Both have looked when this has.
    await server.mayfly.catch(inbox).status()
    await suspendAt(server, inbox.publicId)
    t.mock.timers.tick(POLL_EVERY_MS)
    const { status, text } = await answer
    assert.deepEqual([status, text], [200, '{"events":[],"nextCursor":null,"latestSequence":1}'])
    assert.equal(await stream.next(), null)
    const again = await listen(t, server, inbox)
    assert.equal(await again.next(), null)
    await resumeAt(server, inbox.publicId)
    const resumed = await listen(t, server, { ...inbox, lastEventId: '0' })
    assert.equal((await resumed.next())?.event, 'capture')
  })

  test('a wait and a stream of a suspended monitor end within 5 seconds, without content', async (t) => {
    const server = await startServer(t, METRICS)
    const monitor = await aMonitor(server)
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const response = await fetch(`${server.url}/api/pulse/${monitor.publicId}/stream`, {
      headers: { authorization: `Bearer ${monitor.ownerToken}` },
    })
    assert.ok(response.body)
    const events = readEvents(response.body, createEventParser())
    assert.equal((await events.next()).value?.event, 'state')
    const answer = ask(server, `/api/pulse/${monitor.publicId}?wait=30`, monitor.ownerToken)
    while ((await openStreams(server)) < 2);
    await server.mayfly.pulse(monitor).status()
    await suspendAt(server, monitor.publicId)
    t.mock.timers.tick(POLL_EVERY_MS)
    assert.deepEqual(await answer, NOT_FOUND)
    assert.equal((await events.next()).done, true)
  })
})

suite('a suspended capability', () => {
  const theServer = shareServer()

  test('a suspended inbox takes nothing, its owner still reads it, and resuming restores it', async () => {
    const server = await theServer()
    const inbox = await anInbox(server)
    await sendMany(server, inbox, { count: 1, body: String })
    await suspendAt(server, inbox.publicId, 'phishing')
    for (const headers of [{}, { authorization: `Bearer ${inbox.ingestToken}` }]) {
      assert.equal((await fetch(`${server.url}/c/${inbox.publicId}`, { headers })).status, 401)
    }
    const owned = server.mayfly.catch(inbox)
    assert.equal((await owned.status()).status, 'suspended')
    assert.equal((await owned.page()).events.length, 1)
    await resumeAt(server, inbox.publicId)
    await sendMany(server, inbox, { count: 1, body: String })
    const { status, acceptedRequestCount } = await owned.status()
    assert.deepEqual([status, acceptedRequestCount], ['active', 2])
  })

  test('a suspended whisper reads like an unknown one, keeps its bytes and its reads, and opens again when resumed', async () => {
    const server = await theServer()
    const sent = (await aWhisper(server, {
      readLimit: 3,
      headers: { 'x-whisper-receipt': 'on' },
    })) as SharedWhisper
    const receipt = server.mayfly.whisperReceipt(sent)
    assert.equal((await read(server, sent)).status, 200, 'the instance remembers it')
    const { ciphertexts } = await stored(server)
    await suspendAt(server, sent.publicId, 'court order 5')
    const nobody = { publicId: `whisper_${'0'.repeat(22)}`, readToken: sent.readToken }
    const answers = [await read(server, sent), await read(server, sent), await read(server, nobody)]
    assert.deepEqual(answers.map(short), [NOT_FOUND, NOT_FOUND, NOT_FOUND])
    assert.equal((await stored(server)).ciphertexts, ciphertexts)
    const { state, readsSpent, readsLeft, endedAt } = await receipt.status()
    assert.deepEqual([state, readsSpent, readsLeft, endedAt], ['suspended', 1, 2, null])
    await resumeAt(server, sent.publicId)
    assert.equal((await read(server, sent)).status, 200)
    assert.equal((await receipt.status()).readsLeft, 1)
  })

  test('a suspended monitor is as unknown to its job, its owner and the public, and resuming restores all of it', async () => {
    const server = await theServer()
    const monitor = await aMonitor(server)
    const owned = server.mayfly.pulse(monitor)
    await owned.ping()
    const before = await owned.update({ name: 'backup', publicStatusEnabled: true })
    await suspendAt(server, monitor.publicId, 'spam')
    assert.deepEqual(await ping(server, monitor), NOT_FOUND)
    assert.deepEqual(
      await ping(server, { ...monitor, publicId: `${monitor.publicId}/fail` }),
      NOT_FOUND,
    )
    for (const [method, body] of [['GET'], ['PATCH', '{"name":"x"}'], ['DELETE']] as const) {
      const { status, text } = await owner(server, monitor, { method, body })
      assert.deepEqual({ status, text }, NOT_FOUND, method)
    }
    for (const path of [before.publicStatusId, `${before.publicStatusId}/badge.svg`]) {
      const { status, text } = await shared(server, path)
      assert.deepEqual({ status, text }, NOT_FOUND, path)
    }
    await resumeAt(server, monitor.publicId)
    const { blindWindows, nextExpectedAt, lateAt, ...after } = await owned.status()
    assert.equal(blindWindows.length, 1)
    assert.deepEqual(after, without(before, 'blindWindows', 'nextExpectedAt', 'lateAt'))
    assert.ok(nextExpectedAt && lateAt)
    assert.deepEqual(await ping(server, monitor), DONE)
    assert.equal((await shared(server, before.publicStatusId)).status, 200)
  })

  test('a paid order whose capability is suspended still delivers, and repeats its answer', async () => {
    const server = await theServer()
    const key = randomUUID()
    const quote = quoteOf(await purchase(server, { target: '/api/payments/catch', key }))
    await server.pay(quote.bolt11)
    const publicId = await until('it is settled', async () => {
      const [order] = await query(
        server,
        `select public_id from purchase_order where order_id = $1 and state = 'settled'`,
        quote.orderId,
      )
      return order?.public_id as string | undefined
    })
    await suspendAt(server, publicId)
    const first = await poll(server, quote.orderId)
    assert.equal(first.status, 200)
    const { resource } = JSON.parse(first.text) as { resource: CatchCapability }
    assert.equal(resource.publicId, publicId)
    assert.equal((await purchase(server, { target: '/api/payments/catch', key })).text, first.text)
    assert.equal((await server.mayfly.catch(resource).status()).status, 'suspended')
  })
})

test('a suspension makes no monitor late and opens no switch, and a monitor is late one interval and grace after it', async (t) => {
  const server = await startServer(t)
  const { monitor, sent } = await aSwitch(server)
  await live(server, 30 * SECOND)
  await ping(server, monitor)
  await suspendAt(server, monitor.publicId)
  await live(server, 2 * HOUR)
  await scanned(server)
  assert.equal(await stateOf(server, sent), 'armed')
  await resumeAt(server, monitor.publicId)
  const owned = server.mayfly.pulse(monitor)
  const { state, lateAt, blindWindows } = await owned.status()
  assert.equal(state, 'operational')
  assert.equal(Date.parse(lateAt ?? ''), Date.parse(blindWindows[0]?.endedAt ?? '') + 2 * MINUTE)
  await live(server, 3 * MINUTE)
  await until('it is late', async () => (await owned.status()).state === 'late')
  await live(server, HOUR)
  await until('the secret opens', async () => {
    if ((await stateOf(server, sent)) === 'open') return true
    // A look makes one step: what is due after it is looked at ten seconds later.
    await live(server, 10_000)
    return false
  })
})

async function openStreams(server: TestServer): Promise<number> {
  const { series } = await scrape(server)
  let count = 0
  for (const [name, value] of series) if (name.startsWith('mayfly_open_streams{')) count += value
  return count
}

function without<T extends object, K extends keyof T>(from: T, ...names: K[]): Omit<T, K> {
  return Object.fromEntries(
    Object.entries(from).filter(([name]) => !names.includes(name as K)),
  ) as Omit<T, K>
}

/** Resolves when a scan that began after this call is over: it has told of another monitor. */
async function scanned(server: TestServer): Promise<void> {
  const other: PulseCapability = await aMonitor(server)
  await query(
    server,
    'update pulse_monitor set created_at = $2, expires_at = $3, check_at = 1 where public_id = $1',
    other.publicId,
    server.now() - HOUR,
    server.now() + MINUTE,
  )
  await until('the scan', async () => {
    const [row] = await query(
      server,
      'select is_expiry_told from pulse_monitor where public_id = $1',
      other.publicId,
    )
    return row?.is_expiry_told === 1
  })
}
