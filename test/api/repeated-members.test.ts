import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { GateQuote } from '../../src/client/index.ts'
import { assertNothingHappened, purchase } from '../support/buying.ts'
import { aShop } from '../support/gate-server.ts'
import { aMonitor } from '../support/pulse.ts'
import { startServer } from '../support/server.ts'

suite('a member that is sent twice', () => {
  test('a purchase that names its plan twice is refused, and nothing is opened', async (t) => {
    const server = await startServer(t)
    for (const body of [
      '{"planId":"spark","planId":"long"}',
      '{"planId":"spark","planId":"spark"}',
      '{"planId":"spark","plan\\u0049d":"long"}',
    ]) {
      for (const target of ['/api/payments/catch', '/api/payments/pulse']) {
        const { status, text } = await purchase(server, { body, target })
        assert.deepEqual([status, JSON.parse(text).error], [400, 'invalid request body'], body)
      }
    }
    await assertNothingHappened(server)
  })

  test('settings that say one thing twice are refused, and change nothing', async (t) => {
    const server = await startServer(t)
    const monitor = await aMonitor(server)
    const change = async (body: string) => {
      const answer = await fetch(`${server.url}/api/pulse/${monitor.publicId}`, {
        method: 'PATCH',
        headers: {
          authorization: `Bearer ${monitor.ownerToken}`,
          'content-type': 'application/json',
        },
        body,
      })
      return [answer.status, await answer.json()] as const
    }
    const [status, { error }] = await change('{"name":"a","graceSeconds":600,"name":"b"}')
    assert.deepEqual([status, error], [400, 'invalid request body'])
    const [, { name, graceSeconds }] = await change('{"graceSeconds":600}')
    assert.deepEqual([name, graceSeconds], ['', 600])
  })

  test('a proof with two preimages proves nothing', async (t) => {
    const shop = await aShop(t)
    const quote = (await shop.create({})).body as GateQuote
    const preimage = await shop.pay(quote.bolt11)
    for (const body of [
      `{"preimage":"${'0'.repeat(64)}","preimage":"${preimage}"}`,
      `{"preimage":"${preimage}","preimage":"${preimage}"}`,
    ]) {
      const { status, body: answer } = await shop.proveRaw(quote.intentId, body)
      assert.deepEqual([status, (answer as { error: string }).error], [400, 'malformed proof'])
    }
    assert.equal((await shop.prove(quote, { preimage })).status, 200)
  })
})
