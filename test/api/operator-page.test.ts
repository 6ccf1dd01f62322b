/** The operator's page on the listener of the metrics. */
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { suite, test } from 'node:test'
import { containsToken } from '../../src/lib/ids.ts'
import { anInbox } from '../support/catch.ts'
import { listener } from '../support/scrape.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { query } from '../support/store.ts'

const ON = { MAYFLY_METRICS_PORT: '0' }

type Page = { status: number | undefined; policy: unknown; caching: unknown; text: string }

/** Fetch sets the Host header itself. */
function page(server: TestServer, host?: string, method = 'GET'): Promise<Page> {
  return new Promise((resolve, reject) => {
    const headers = host === undefined ? {} : { host }
    request(new URL('/', listener(server)), { method, headers }, async (answer) => {
      const text = Buffer.concat(await answer.toArray()).toString()
      const policy = answer.headers['content-security-policy']
      const caching = answer.headers['cache-control']
      resolve({ status: answer.statusCode, policy, caching, text })
    })
      .on('error', reject)
      .end()
  })
}

suite("the operator's page", () => {
  test('shows sales, open quotes, owed orders, storage and latency, and nothing that names a buyer', async (t) => {
    const server = await startServer(t, ON)
    server.awaitNoon()
    const before = await page(server)
    assert.match(before.text, /Nothing was sold in the last 30 days/)
    const inbox = await anInbox(server)
    await fetch(`${server.url}/c/${inbox.publicId}`, { method: 'POST', body: 'x'.repeat(5_000) })
    await fetch(`${server.url}/api/payments/catch`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'a key of eight' },
      body: '{"planId":"spark"}',
    })
    await query(
      server,
      `insert into sale (payment_hash, settled_at, product, plan_id, amount_sats, network)
       values ('ab', $1, 'pulse', 'spark', 50, 'regtest')`,
      server.now() - 24 * 60 * 60 * 1000,
    )
    const { status, text } = await page(server)
    assert.equal(status, 200)
    assert.match(text, /Sales<\/span><strong class="good">open/)
    assert.match(text, /Open quotes<\/span><strong class="">1</)
    assert.match(text, /Owed orders<\/span><strong class="good">0</)
    assert.match(text, /Sold today<\/span><strong class="">100 sat/)
    assert.match(text, /Sold in 30 days<\/span><strong class="">150 sat/)
    assert.match(text, /100 sat of Inboxes/)
    assert.match(text, /50 sat of Monitors/)
    assert.match(text, /■<\/span> Secrets/)
    assert.doesNotMatch(text, /CATCH|WHISPER|PULSE/)
    assert.match(text, /<td>Requests in inboxes<\/td><td>[5-9](?:\.\d)? KiB/)
    assert.match(
      text,
      /<code>POST \/c\/:publicId<\/code><\/td><td>1<\/td><td>(?:≤ [1-9][\d,.]* ms|above 10 s)</,
    )
    assert.ok(!text.includes(inbox.publicId) && !containsToken(text))
    assert.doesNotMatch(text, /[0-9a-f]{64}|127\.0\.0\.1/)
  })

  test('says what to do about an order that is owed', async (t) => {
    const server = await startServer(t, ON)
    await anInbox(server)
    await query(server, `update purchase_order set state = 'paid_unfulfilled'`)
    const { text } = await page(server)
    assert.match(text, /Owed orders<\/span><strong class="bad">1</)
    assert.match(text, /mayfly order list --state paid_unfulfilled/)
  })

  test('answers a name of this machine alone, since a page of another site can use any other', async (t) => {
    const server = await startServer(t, ON)
    const { port } = new URL(listener(server))
    for (const host of ['localhost', `127.0.0.1:${port}`, `[::1]:${port}`]) {
      assert.equal((await page(server, host)).status, 200, host)
    }
    for (const host of ['evil.example', `evil.example:${port}`, '127.0.0.1.evil.example']) {
      assert.notEqual((await page(server, host)).status, 200, host)
    }
    assert.equal((await page(server, undefined, 'POST')).status, 405)
  })

  test('loads nothing, runs nothing, stands in no frame, and is kept by no cache', async (t) => {
    const { policy, caching, text } = await page(await startServer(t, ON))
    assert.match(
      String(policy),
      /^default-src 'none'; style-src 'sha256-[^']+'; .*frame-ancestors 'none'$/,
    )
    assert.doesNotMatch(text, /<script|style="|https?:|src=|\son\w+=/)
    assert.equal(caching, 'no-store')
  })
})
