/** Many waits at /mcp: how many are let in, and that the service answers the others. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { CatchCapability } from '../../../src/client/index.ts'
import { TOKEN_META } from '../../../src/tools/tool.ts'
import { anInbox } from '../../support/catch.ts'
import type { After } from '../../support/folder.ts'
import { limited } from '../../support/limits.ts'
import { connect, message, post, readIn } from '../../support/mcp.ts'
import { scrape } from '../../support/scrape.ts'
import type { TestServer } from '../../support/server.ts'

/** From now on no wait is over by itself: what ends was told to end. */
const holdTimers = (t: TestContext): void => t.mock.timers.enable({ apis: ['setTimeout'] })

/** Asks again and again, while the timers are held. */
async function soon(what: string, ask: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 1_000; tries++) {
    if (await ask()) return
    await new Promise(setImmediate)
  }
  assert.fail(`asked 1000 times: ${what}`)
}

const waitOn = ({ publicId, ownerToken }: CatchCapability): string =>
  message('tools/call', {
    name: 'wait_for_webhook',
    arguments: { publicId, after: 0, timeoutSeconds: 600 },
    _meta: { [TOKEN_META]: ownerToken },
  })

/** Waits in the name of a client behind a proxy, until the test aborts it. */
function wait(
  server: TestServer,
  { inbox, from, signal }: { inbox: CatchCapability; from: string; signal: AbortSignal },
) {
  return fetch(`${server.url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'x-forwarded-for': from,
    },
    body: waitOn(inbox),
    signal,
  })
    .then(async (answer) => ({ answer, text: await answer.text() }))
    .catch(() => null)
}

const waits = async (server: TestServer): Promise<number> => {
  const { series } = await scrape(server)
  return series.get('mayfly_open_streams{route="/api/catch/:publicId/events"}') ?? 0
}

const aCrowd = (t: After): Promise<TestServer> =>
  limited(
    t,
    { openOrders: null },
    { MAYFLY_TRUSTED_PROXIES: '127.0.0.1', MAYFLY_METRICS_PORT: '0' },
  )

/** A host that can wait on an inbox of its own. From now on the timers are held. */
async function anAgent(t: TestContext, options: Parameters<typeof connect>[2] = {}) {
  const server = await aCrowd(t)
  const { publicId, ownerToken: token } = await anInbox(server)
  const agent = await connect(t, server.url, options)
  holdTimers(t)
  return { server, agent, token, given: { publicId, after: 0, timeoutSeconds: 600 } }
}

test('a network has 64 waits; one that is cancelled frees its place at once', async (t) => {
  const server = await aCrowd(t)
  const inbox = await anInbox(server)
  const other = await anInbox(server)
  holdTimers(t)
  const cancels = Array.from({ length: 64 }, () => new AbortController())
  t.after(() => {
    for (const cancel of cancels) cancel.abort()
  })
  const from = '198.51.100.7'
  for (const { signal } of cancels) void wait(server, { inbox, from, signal })
  await soon('all wait', async () => (await waits(server)) === 64)
  const asked = () => post(server.url, message('ping'), { 'x-forwarded-for': from })
  const { status, headers } = await asked()
  assert.equal(status, 429)
  assert.ok(Number(headers.get('retry-after')) > 0)
  cancels[0]?.abort()
  await soon('its place is free', async () => (await asked()).status === 200)
  assert.equal(await waits(server), 63, 'the places of the inbox are free as well')
  const last = new AbortController()
  t.after(() => last.abort())
  void wait(server, { inbox: other, from, signal: last.signal })
  await soon('another waits', async () => (await waits(server)) === 64)
})

test('a wait that its client of 2026-07-28 cancels ends at once, also when it has told of its progress', async (t) => {
  const { server, agent, given, token } = await anAgent(t)
  let told = 0
  // Its answer is then a stream, which is all that the call still has of its client.
  for (const more of [{}, { onProgress: () => void told++ }]) {
    const cancel = new AbortController()
    const options = { token, signal: cancel.signal, ...more }
    const cancelled = assert.rejects(agent.call('wait_for_webhook', given, options))
    const isTold = () => told > 0 || !('onProgress' in more)
    await soon('it waits', async () => isTold() && (await waits(server)) === 1)
    cancel.abort()
    await cancelled
    await soon('it has ended', async () => (await waits(server)) === 0)
  }
})

test('a wait ends with an answer when the service stops, and does not keep it', async (t) => {
  const { server, agent, given, token } = await anAgent(t)
  const ended = agent.call('wait_for_webhook', given, { token })
  await soon('it waits', async () => (await waits(server)) === 1)
  await server.stop()
  assert.equal(readIn(await ended).reason, 'timeout')
})

test("a notification of 2025-11-25 cancels nobody's wait, and closing the connection ends one's own at once", async (t) => {
  const { server, agent, given, token } = await anAgent(t, { revision: '2025-11-25' })
  const ended = assert.rejects(agent.call('wait_for_webhook', given, { token }))
  await soon('it waits', async () => (await waits(server)) === 1)
  // Clients count their requests from 0, so a stranger knows the numbers of all others.
  for (let requestId = 0; requestId < 5; requestId++) {
    const params = { requestId, reason: 'x' }
    const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params }
    assert.equal((await post(server.url, JSON.stringify(cancelled))).status, 202)
  }
  assert.equal(await waits(server), 1)
  await agent.close()
  await ended
  await soon('it has ended', async () => (await waits(server)) === 0)
})
