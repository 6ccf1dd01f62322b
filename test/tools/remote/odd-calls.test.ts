import assert from 'node:assert/strict'
import { test } from 'node:test'
import { quoteOf } from '../../support/buying.ts'
import { anInbox } from '../../support/catch.ts'
import { extend } from '../../support/extension.ts'
import { connect, refusalIn } from '../../support/mcp.ts'
import { startServer, type TestServer } from '../../support/server.ts'

type After = Parameters<typeof startServer>[0]

test('an id with half of a surrogate pair is not found, and is no fault of the service', async (t) => {
  const { server, agent, token } = await anOwner(t)
  const calls: [string, Record<string, unknown>][] = [
    ['read_inbox', { publicId: '\ud800' }],
    ['destroy', { publicId: 'catch_\ud800' }],
    ['check_order', { orderId: '\ud800' }],
  ]
  for (const [tool, ask] of calls) {
    const answer = JSON.stringify(await agent.call(tool, ask, { token }))
    assert.doesNotMatch(answer, /internal error/, tool)
    assert.match(answer, /"isError":true/, tool)
  }
  assert.deepEqual(faultsOf(server), [])
})

test('an id that is another path of the service is not found, and nothing is asked', async (t) => {
  const { agent, token } = await anOwner(t)
  const order = `order_${'0'.repeat(22)}`
  for (const orderId of [
    'catch',
    'whisper',
    'pulse',
    '..',
    'order_x',
    `${order}/x`,
    `${order}?x`,
  ]) {
    const said = refusalIn(await agent.call('check_order', { orderId }))
    assert.match(said, /^order not found\. .*the operator can restore/, orderId)
  }
  for (const publicId of ['public', '.', '..', 'catch_x/..', 'catch_', 'whisper%2fx', '_x']) {
    for (const tool of ['read_inbox', 'monitor_status', 'ping', 'read_whisper', 'destroy']) {
      const said = refusalIn(await agent.call(tool, { publicId }, { token }))
      assert.match(said, /^not found\. /, `${tool} ${publicId}`)
      assert.doesNotMatch(said, /X-Request-Id/)
    }
  }
})

test('the order of an extension that was asked for over HTTP is settled, with its new end and without a token', async (t) => {
  const { server, agent, token, inbox } = await anOwner(t)
  const { orderId, bolt11 } = quoteOf(await extend(server, { ...inbox, product: 'catch' }))
  await server.pay(bolt11)
  const text = JSON.stringify(await agent.call('check_order', { orderId }))
  assert.match(text, /"state":"settled"/)
  assert.match(text, /It lasts until 2/)
  assert.ok(!text.includes(token))
  assert.deepEqual(faultsOf(server), [])
})

test('the log names a fault of the service, and says nothing of what the caller sent', async (t) => {
  const { server, agent, token, publicId } = await anOwner(t)
  const body = 'between you and me'
  const stringify = JSON.stringify
  t.mock.method(JSON, 'stringify', (...args: Parameters<typeof stringify>) => {
    // What the tool asks of the service, and not the message of the host around it.
    if (args[0]?.body === body) throw new TypeError(`no JSON of ${body}`)
    return stringify(...args)
  })
  const answer = await agent.call(
    'set_webhook_response',
    { publicId, status: 200, body },
    { token },
  )
  assert.match(stringify(answer), /"isError":true/)
  assert.equal(faultsOf(server).length, 1)
  const { tool, reason } = JSON.parse(faultsOf(server)[0] ?? '')
  assert.deepEqual({ tool, reason }, { tool: 'set_webhook_response', reason: 'TypeError' })
  assert.ok(!server.logged.some((line) => line.includes(body)))
})

async function anOwner(t: After) {
  const server = await startServer(t)
  const agent = await connect(t, server.url)
  const inbox = await anInbox(server)
  return { server, agent, inbox, publicId: inbox.publicId, token: inbox.ownerToken }
}

const faultsOf = ({ logged }: TestServer): string[] =>
  logged.filter((line) => line.includes('mcp.failed'))
