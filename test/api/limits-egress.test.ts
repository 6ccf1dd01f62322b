/** Networks of agents: one address stands for many buyers, so it may open more orders. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { purchase } from '../support/buying.ts'
import { ask, LIMITED, limited, limitHeaders, short } from '../support/limits.ts'

const EGRESS = {
  MAYFLY_TRUSTED_PROXIES: '127.0.0.1',
  MAYFLY_EGRESS_NETWORKS: '192.0.2.0/24,2001:db8::/32',
}
const once = { perMinute: 1, burst: 1 }

test('a network of agents has a limit of its own on new orders, by key and by one URL', async (t) => {
  const rates = { quote: once, quoteEgress: { perMinute: 2, burst: 2 } }
  const server = await limited(t, rates, EGRESS)
  for (const from of ['192.0.2.1', '192.0.2.200']) {
    const answer = await purchase(server, { from })
    assert.deepEqual([answer.status, limitHeaders(answer).policy], [402, '"quoteEgress";q=2;w=60'])
  }
  assert.deepEqual(short(await purchase(server, { from: '192.0.2.3' })), LIMITED)
  const headers = { 'x-forwarded-for': '2001:db8:1::1' }
  const byUrl = await ask(server, '/api/buy/catch/spark', { headers })
  assert.equal(limitHeaders(byUrl).policy, '"quoteEgress";q=2;w=60')
})

test('any other network has the limits that it had', async (t) => {
  const server = await limited(t, { quote: once, openOrders: 1 }, EGRESS)
  const answer = await purchase(server, { from: '198.51.100.1' })
  assert.deepEqual([answer.status, limitHeaders(answer).policy], [402, '"quote";q=1;w=60'])
  assert.deepEqual(short(await purchase(server, { from: '198.51.100.9' })), LIMITED)
})

test('a network of agents may have twelve times as many open orders', async (t) => {
  const server = await limited(t, { openOrders: 1 }, EGRESS)
  for (let i = 0; i < 12; i++) {
    assert.equal((await purchase(server, { from: '192.0.2.1' })).status, 402)
  }
  assert.equal((await purchase(server, { from: '192.0.2.1' })).status, 429)
})
