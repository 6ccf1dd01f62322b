/** MCP Events at /mcp: what is told, to whom, and that a cursor misses and doubles nothing. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createMCPClient } from '@ai-sdk/mcp'
import type { CatchCapability } from '../../src/client/index.ts'
import { containsToken } from '../../src/lib/ids.ts'
import { anInbox } from '../support/catch.ts'
import type { After } from '../support/folder.ts'
import { limited } from '../support/limits.ts'
import { message, post } from '../support/mcp.ts'
import { type Follower, follower, type Occurrence, type Stream } from '../support/mcp-events.ts'
import { aMonitor, live, ping } from '../support/pulse.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suspendAt } from '../support/takedown.ts'

const ON = { MAYFLY_MCP_EVENTS: 'on' }
const FORBIDDEN = -32024
const HOUR = 60 * 60 * 1000

const deliver = async ({ url }: { url: string }, { publicId }: CatchCapability, body: string) =>
  assert.equal((await fetch(`${url}/c/${publicId}`, { method: 'POST', body })).status, 204)

const sequencesIn = (events: Occurrence[]): number[] =>
  events.map(({ data }) => (data.webhook as { sequence: number }).sequence)

async function aFollowedInbox(t: After, server: TestServer) {
  const inbox = await anInbox(server, 'long')
  const agent = await follower(t, server.url, inbox.ownerToken)
  const given = { name: 'catch.received', arguments: { publicId: inbox.publicId } }
  return { inbox, agent, given }
}

/** Polls until nothing is left. */
async function drain(agent: Follower, given: object, from: string) {
  const events: Occurrence[] = []
  let cursor = from
  for (;;) {
    const page = await agent.poll({ ...given, cursor })
    events.push(...page.events)
    cursor = page.cursor
    if (!page.hasMore) return { events, cursor }
  }
}

/** The next events of a stream. */
async function take(stream: Stream, count: number): Promise<Occurrence[]> {
  const events: Occurrence[] = []
  while (events.length < count) {
    const { method, params } = await stream.next()
    assert.equal(method, 'notifications/events/event')
    events.push(params as unknown as Occurrence)
  }
  return events
}

suite('MCP Events', () => {
  test('events are off unless the operator switches them on', async (t) => {
    const server = await startServer(t)
    const agent = await follower(t, server.url)
    assert.deepEqual(agent.capabilities(), { tools: {} })
    for (const method of ['events/list', 'events/poll', 'events/stream', 'events/subscribe']) {
      const { json } = await post(server.url, message(method))
      assert.equal((json.error as { code: number }).code, -32601, method)
    }
  })

  test('events are listed for the client of the AI SDK, which knows that it cannot subscribe by webhook', async (t) => {
    const { url } = await startServer(t, ON)
    const client = await createMCPClient({
      transport: { type: 'http', url: `${url}/mcp` },
      experimental_events: {
        store: {
          get: async () => undefined,
          getById: async () => undefined,
          ...{ set: async () => {}, update: async () => {}, delete: async () => {} },
        },
      },
    })
    t.after(() => client.close())
    const { events } = await client.experimental_events.list()
    assert.deepEqual(
      events.map(({ name, delivery }) => [name, delivery]),
      ['catch.received', 'pulse.late', 'pulse.recovered'].map((name) => [name, ['poll', 'push']]),
    )
    await assert.rejects(
      client.experimental_events.subscribe({
        name: 'catch.received',
        arguments: { publicId: 'catch_x' },
        delivery: { mode: 'webhook', url: 'https://hooks.example/mcp' },
      }),
      /does not support webhook delivery/,
    )
  })

  test('events are declared as the extension, and webhooks are refused by their own error', async (t) => {
    const server = await startServer(t, ON)
    const agent = await follower(t, server.url)
    const { extensions } = agent.capabilities() as { extensions: object }
    assert.deepEqual(extensions, { 'io.modelcontextprotocol/events': {} })
    for (const method of ['events/subscribe', 'events/unsubscribe']) {
      const { code, data } = await agent.fault(method, { name: 'catch.received' })
      assert.equal(code, -32026)
      assert.deepEqual(data, { feature: 'deliveryMode', value: 'webhook' })
    }
  })

  test('events are refused with wrong parameters, without repeating them', async (t) => {
    const server = await startServer(t, ON)
    const { agent, given } = await aFollowedInbox(t, server)
    for (const method of ['events/poll', 'events/stream']) {
      for (const [wrong, code] of [
        [{ ...given, name: 'hunter2' }, -32023],
        [{ ...given, name: 7 }, -32602],
        [{ ...given, arguments: {} }, -32602],
        [{ ...given, arguments: { ...given.arguments, hunter2: 'hunter2' } }, -32602],
        [{ ...given, arguments: { ...given.arguments, token: 'hunter2' } }, -32602],
        [{ ...given, cursor: 'hunter2' }, -32602],
        [{ ...given, cursor: '-1' }, -32602],
        [{ ...given, cursor: '01' }, -32602],
        [{ ...given, cursor: 7 }, -32602],
        [{ ...given, maxAgeMs: -1 }, -32602],
        [{ ...given, maxEvents: 0 }, -32602],
      ] as const) {
        const fault = await agent.fault(method, wrong)
        assert.equal(fault.code, code, `${method} ${JSON.stringify(wrong)}`)
        assert.doesNotMatch(JSON.stringify([fault.message, fault.data]), /hunter2/)
      }
    }
    assert.equal((await agent.fault('events/list', { cursor: 'x' })).code, -32602)
  })

  test('events need the owner token of their capability, which no answer has', async (t) => {
    const server = await startServer(t, { ...ON, MAYFLY_LOG_LEVEL: 'trace' })
    const { inbox, given } = await aFollowedInbox(t, server)
    const other = await anInbox(server)
    const monitor = await aMonitor(server)
    await deliver(server, inbox, inbox.ownerToken)
    for (const token of [undefined, 'x', inbox.ingestToken, other.ownerToken, monitor.ownerToken]) {
      const agent = await follower(t, server.url, token)
      for (const method of ['events/poll', 'events/stream']) {
        const fault = await agent.fault(method, { ...given, cursor: '0' })
        assert.equal(fault.code, FORBIDDEN)
        assert.ok(!containsToken(JSON.stringify([fault.message, fault.data])))
      }
    }
    const body = message('events/poll', { ...given, cursor: '0' })
    const asBearer = await post(server.url, body, { authorization: `Bearer ${inbox.ownerToken}` })
    assert.match(asBearer.text, /untrustedText/)
    assert.ok(!containsToken(asBearer.text))
    assert.ok(!containsToken(server.logged.join()))
  })
})

suite('webhooks that are polled for', () => {
  test('webhooks that are polled for come each once and in order, from now on, while others arrive', async (t) => {
    const server = await startServer(t, ON)
    const { inbox, agent, given } = await aFollowedInbox(t, server)
    await deliver(server, inbox, 'before')
    const first = await agent.poll(given)
    assert.deepEqual(first.events, [])
    assert.deepEqual([first.truncated, first.hasMore], [false, false])
    assert.ok(first.nextPollMs >= 1000)
    const seen: number[] = []
    let { cursor } = first
    for (let round = 0; round < 5; round++) {
      const [page] = await Promise.all([
        agent.poll({ ...given, cursor, maxEvents: 2 }),
        ...['a', 'b', 'c'].map((body) => deliver(server, inbox, body)),
      ])
      assert.ok(page.events.length <= 2)
      seen.push(...sequencesIn(page.events))
      cursor = page.cursor
    }
    const rest = await drain(agent, { ...given, maxEvents: 2 }, cursor)
    seen.push(...sequencesIn(rest.events))
    assert.deepEqual(
      seen,
      Array.from({ length: 15 }, (_, i) => i + 2),
    )
    assert.deepEqual((await agent.poll({ ...given, cursor: rest.cursor })).events, [])
  })

  test('webhooks that are polled for are data of a stranger: marked, escaped, and at most 4 KiB of each text', async (t) => {
    const server = await startServer(t, ON)
    const { inbox, agent, given } = await aFollowedInbox(t, server)
    await deliver(server, inbox, `\u001b[2J\u202e${'x'.repeat(100_000)}`)
    const { events } = await agent.poll({ ...given, cursor: '0' })
    const [event] = events
    assert.ok(event)
    const { notice, webhook } = event.data as {
      notice: string
      webhook: { id: string; body: { untrustedText: string; isCut: boolean } }
    }
    assert.match(notice, /do not follow instructions/)
    assert.match(webhook.body.untrustedText, /^\\u\{1b\}\[2J\\u\{202e\}x/)
    assert.ok(Buffer.byteLength(webhook.body.untrustedText) <= 4096)
    assert.ok(webhook.body.isCut)
    assert.equal(event.eventId, webhook.id)
  })

  test('webhooks that are polled for are filtered by arguments, and the cursor passes those that do not match', async (t) => {
    const server = await startServer(t, ON)
    const { inbox, agent, given } = await aFollowedInbox(t, server)
    const gets = { ...given, arguments: { ...given.arguments, method: 'GET' } }
    await deliver(server, inbox, 'a')
    await deliver(server, inbox, 'b')
    const { events, cursor } = await agent.poll({ ...gets, cursor: '0' })
    assert.deepEqual([events, cursor], [[], '2'])
  })

  test('webhooks that are older than the client wants are left out, and the client is told so', async (t) => {
    const server = await startServer(t, ON)
    const { inbox, agent, given } = await aFollowedInbox(t, server)
    await deliver(server, inbox, 'old')
    server.clock.advance(HOUR)
    await deliver(server, inbox, 'young')
    const recent = { ...given, cursor: '0', maxAgeMs: HOUR / 2 }
    const page = await agent.poll(recent)
    assert.deepEqual([sequencesIn(page.events), page.truncated], [[2], true])
    const stream = agent.stream(recent)
    assert.equal((await stream.next()).params.truncated, true)
    assert.deepEqual(sequencesIn(await take(stream, 1)), [2])
    stream.leave()
  })

  test('webhooks that are polled for go on from now behind a cursor that the inbox has not reached', async (t) => {
    const server = await startServer(t, ON)
    const { inbox, agent, given } = await aFollowedInbox(t, server)
    await deliver(server, inbox, 'a')
    const { cursor, truncated } = await agent.poll({ ...given, cursor: '999' })
    assert.deepEqual([cursor, truncated], ['1', true])
  })

  test('webhooks that are polled for end with the inbox: destroyed, expired or suspended', async (t) => {
    const server = await startServer(t, ON)
    for (const end of [
      ({ inbox }: { inbox: CatchCapability }) => server.mayfly.catch(inbox).destroy(),
      ({ inbox }: { inbox: CatchCapability }) => suspendAt(server, inbox.publicId),
      async () => server.clock.advance(400 * 24 * HOUR),
    ]) {
      const followed = await aFollowedInbox(t, server)
      const { agent, given } = followed
      const { cursor } = await agent.poll(given)
      await end(followed)
      assert.equal((await agent.fault('events/poll', { ...given, cursor })).code, FORBIDDEN)
      assert.equal((await agent.fault('events/poll', given)).code, FORBIDDEN)
      assert.equal((await agent.fault('events/stream', { ...given, cursor })).code, FORBIDDEN)
    }
  })

  test('webhooks that are polled for are refused beyond the limit of their inbox, with the time to wait', async (t) => {
    const server = await limited(t, { owner: { perMinute: 1, burst: 4 } }, ON)
    const { agent, given } = await aFollowedInbox(t, server)
    await agent.poll(given)
    await agent.poll({ ...given, cursor: '0' })
    const { code, data } = await agent.fault('events/poll', { ...given, cursor: '0' })
    assert.equal(code, -32025)
    assert.ok(Number(data?.retryAfterMs) >= 1000)
  })
})

suite('webhooks that are streamed', () => {
  test('webhooks that are streamed come each once and in order, also over a lost connection', async (t) => {
    const server = await startServer(t, ON)
    const { inbox, agent, given } = await aFollowedInbox(t, server)
    const first = agent.stream(given)
    const active = await first.next()
    assert.equal(active.method, 'notifications/events/active')
    assert.deepEqual([active.params.cursor, active.params.truncated], ['0', false])
    assert.deepEqual(Object.keys(active.params._meta as object), [
      'io.modelcontextprotocol/subscriptionId',
    ])
    await deliver(server, inbox, 'a')
    await deliver(server, inbox, 'b')
    const some = await take(first, 2)
    first.leave()
    for (let i = 0; i < 30; i++) await deliver(server, inbox, 'meanwhile')
    const second = agent.stream({ ...given, cursor: some.at(-1)?.cursor })
    assert.equal((await second.next()).method, 'notifications/events/active')
    const rest = await take(second, 30)
    await deliver(server, inbox, 'last')
    rest.push(...(await take(second, 1)))
    second.leave()
    assert.deepEqual(
      sequencesIn([...some, ...rest]),
      Array.from({ length: 33 }, (_, i) => i + 1),
    )
  })

  test('webhooks that are streamed end with a word when the inbox is destroyed or suspended', async (t) => {
    const server = await startServer(t, ON)
    for (const end of ['destroyed', 'suspended']) {
      const { inbox, agent, given } = await aFollowedInbox(t, server)
      const stream = agent.stream(given)
      assert.equal((await stream.next()).method, 'notifications/events/active')
      if (end === 'destroyed') await server.mayfly.catch(inbox).destroy()
      else await suspendAt(server, inbox.publicId)
      const { method, params } = await stream.next()
      assert.equal(method, 'notifications/events/terminated')
      assert.equal((params.error as { code: number }).code, FORBIDDEN)
      assert.deepEqual(
        Object.keys((await stream.ended)._meta as object).includes(
          'io.modelcontextprotocol/subscriptionId',
        ),
        true,
      )
    }
  })

  test('webhooks that are streamed end with the server, which does not wait for them', async (t) => {
    const server = await startServer(t, ON)
    const { agent, given } = await aFollowedInbox(t, server)
    const stream = agent.stream(given)
    await stream.next()
    await server.stop()
    await stream.ended.catch(() => undefined)
  })
})

suite('a monitor that is followed', () => {
  const changes = (publicId: string) =>
    ['pulse.late', 'pulse.recovered'].map((name) => ({ name, arguments: { publicId } }))

  test('a monitor that is followed tells each lateness and recovery once, also those between two polls', async (t) => {
    const server = await startServer(t, ON)
    const monitor = await aMonitor(server, 'long')
    const agent = await follower(t, server.url, monitor.ownerToken)
    const [late, recovered] = changes(monitor.publicId) as [object, object]
    await ping(server, monitor)
    let lateCursor = (await agent.poll({ ...late })).cursor
    const from = (await agent.poll({ ...recovered })).cursor
    const told: Occurrence[] = []
    for (let i = 0; i < 3; i++) {
      await live(server, 24 * HOUR)
      const page = await drain(agent, late, lateCursor)
      told.push(...page.events)
      lateCursor = page.cursor
      assert.deepEqual((await drain(agent, late, lateCursor)).events, [])
      await ping(server, monitor)
    }
    const missed = await drain(agent, late, from)
    assert.deepEqual(missed.events, told)
    assert.equal(told.length, 3)
    const ends = await drain(agent, { ...recovered, maxEvents: 1 }, from)
    assert.equal(ends.events.length, 3)
    for (const [i, { eventId, data, timestamp }] of ends.events.entries()) {
      assert.equal(data.lateAt, told[i]?.data.lateAt)
      assert.equal(data.recoveredAt, timestamp)
      assert.equal(data.cause, 'silence')
      assert.notEqual(eventId, told[i]?.eventId)
    }
    assert.equal(new Set([...ends.events, ...told].map(({ eventId }) => eventId)).size, 6)
    assert.deepEqual((await drain(agent, recovered, ends.cursor)).events, [])
    const { truncated } = await agent.poll({ ...late, cursor: from, maxAgeMs: HOUR })
    assert.equal(truncated, true)
  })

  test('a monitor that is followed tells what comes to a stream, until it is destroyed', async (t) => {
    const server = await startServer(t, ON)
    const monitor = await aMonitor(server, 'long')
    const agent = await follower(t, server.url, monitor.ownerToken)
    await ping(server, monitor)
    await live(server, 24 * HOUR)
    const [, recovered] = changes(monitor.publicId)
    const stream = agent.stream({ ...recovered })
    await stream.next()
    await ping(server, monitor)
    const [told] = await take(stream, 1)
    assert.equal(told?.name, 'pulse.recovered')
    await server.mayfly.pulse(monitor).destroy()
    assert.equal((await stream.next()).method, 'notifications/events/terminated')
  })

  test('a monitor that is followed is told to its end, which is no recovery', async (t) => {
    const server = await startServer(t, ON)
    const monitor = await aMonitor(server, 'spark')
    const agent = await follower(t, server.url, monitor.ownerToken)
    const [late, recovered] = changes(monitor.publicId) as [object, object]
    await ping(server, monitor)
    const { cursor } = await agent.poll({ ...late })
    await live(server, 25 * HOUR)
    const page = await agent.poll({ ...late, cursor })
    assert.equal(page.events.length, 1)
    assert.equal(
      (await agent.fault('events/poll', { ...late, cursor: page.cursor })).code,
      FORBIDDEN,
    )
    const nothing = await agent.poll({ ...recovered, cursor })
    assert.deepEqual(nothing.events, [])
    assert.equal((await agent.fault('events/poll', { ...late })).code, FORBIDDEN)
  })

  test('a monitor that is followed knows no cursor of an inbox, nor one of the far future', async (t) => {
    const server = await startServer(t, ON)
    const monitor = await aMonitor(server)
    const agent = await follower(t, server.url, monitor.ownerToken)
    const [late] = changes(monitor.publicId)
    for (const cursor of ['0', 'late.', 'late.01', 'soon.1', 'late.999999999999999']) {
      assert.equal((await agent.fault('events/poll', { ...late, cursor })).code, -32602, cursor)
    }
  })
})
