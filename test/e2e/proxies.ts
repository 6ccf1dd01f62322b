/**
 * `npm run contract:proxies`: nginx and Caddy from Debian in front of a running service, with the configurations
 * of deploy/. Here is what passes them.
 */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { CatchCapability } from '../../src/client/index.ts'
import {
  l402Authorization,
  l402Challenges,
  paymentAuthorization,
  paymentChallenges,
} from '../support/payer.ts'
import { type Ask, behindEach } from './behind.ts'

const BUY = '/api/buy/catch/spark'
const MIB = 1024 * 1024

behindEach((name, site) => {
  test(`${name} accepts the configuration that the page prints`, async () => {
    assert.match(
      await site().front.check(),
      name === 'nginx' ? /test is successful/ : /Valid config/,
    )
  })

  test(`${name} complains of nothing in the configuration that the page prints`, async () => {
    const lines = (await site().front.check()).split('\n')
    const complaints = lines.filter((line) => /\[warn\]|"level":"(?:warn|error)"/.test(line))
    // Of what is not on the page: a certificate of one's own, no redirects, and a newer nginx.
    const own = /stapling OCSP|redirects are disabled|"listen ... http2" directive is deprecated/
    assert.deepEqual(
      complaints.filter((line) => !own.test(line)),
      [],
    )
  })

  test(`${name} speaks HTTP/2 and HTTP/1.1`, async () => {
    assert.equal(await site().front.chosen(['h2', 'http/1.1']), 'h2')
    assert.equal(await site().front.chosen(['http/1.1']), 'http/1.1')
  })

  test(`a client behind ${name} is known by its own address, whatever it says of itself`, async () => {
    const inbox = await site().anInbox()
    for (const headers of [
      {},
      { 'x-forwarded-for': '203.0.113.9' },
      { 'x-real-ip': '203.0.113.9', forwarded: 'for=203.0.113.9' },
    ]) {
      const from = site().front.client({ from: '127.0.0.2' })
      const event = await site().stored(inbox, '', {
        method: 'POST',
        headers,
        body: 'x',
        client: from,
      })
      assert.equal(event.sourceIp, '127.0.0.2')
      const told = event.headers.filter(({ name }) => /forwarded|real-ip|via/i.test(name))
      assert.deepEqual(told, [])
    }
    assert.equal(site().service.logged('proxies.unknown').length, 0)
  })

  for (const isHttp2 of [false, true]) {
    const version = isHttp2 ? 'HTTP/2' : 'HTTP/1.1'

    test(`a body of the largest size passes ${name} on ${version}, byte for byte`, async () => {
      const own = site().front.client({ isHttp2 })
      const inbox = await site().anInbox('long')
      const body = randomBytes(MIB)
      const { id } = await site().stored(inbox, '', { method: 'PUT', body, client: own })
      const answer = await site().ask(`/api/catch/${inbox.publicId}/events/${id}`, {
        headers: { authorization: `Bearer ${inbox.ownerToken}` },
        client: own,
      })
      const event = (await answer.body.json()) as { body: string; bodyEncoding: string }
      assert.equal(event.bodyEncoding, 'base64')
      assert.equal(sha256(Buffer.from(event.body, 'base64')), sha256(body))
    })

    test(`a body above the plan is refused by the service itself behind ${name} on ${version}`, async () => {
      const own = site().front.client({ isHttp2 })
      const inbox = await site().anInbox()
      const options: Ask = { method: 'POST', body: randomBytes(256 * 1024), client: own }
      const { statusCode, headers, body } = await site().ask(`/c/${inbox.publicId}`, options)
      assert.match(String(headers['content-type']), /^application\/json/)
      assert.equal(statusCode, 400, await body.text())
    })

    test(`a large secret goes up and comes back through ${name} on ${version}`, async () => {
      const own = site().sdk(site().front.client({ isHttp2 }))
      const secret = randomBytes(7.5 * MIB)
      const { code } = await own.buyWhisper({
        planId: 'long',
        data: secret,
        onInvoice: ({ bolt11 }) => site().service.pay(bolt11),
      })
      const { data } = await own.readWhisper(code)
      assert.equal(sha256(data), sha256(secret))
    })

    test(`both challenges, their credentials and the receipt pass ${name} on ${version}`, async () => {
      const own = site().front.client({ isHttp2 })
      for (const scheme of ['Payment', 'L402'] as const) {
        const asked = await site().ask(BUY, { client: own })
        assert.equal(asked.statusCode, 402)
        const lines = [asked.headers['www-authenticate'] ?? []].flat()
        const [challenge] = paymentChallenges(lines)
        const [l402] = l402Challenges(lines)
        assert.ok(challenge && l402, lines.join('\n'))
        const preimage = await site().service.pay(((await asked.body.json()) as Offer).invoice)
        const authorization =
          scheme === 'Payment'
            ? paymentAuthorization({ challenge, payload: { preimage } })
            : l402Authorization({ macaroon: l402.macaroon, preimage })
        const paid = await site().ask(BUY, { headers: { authorization }, client: own })
        assert.equal(paid.statusCode, 200, scheme)
        assert.equal(paid.headers['payment-receipt'] !== undefined, scheme === 'Payment')
        const { resource } = (await paid.body.json()) as { resource: CatchCapability }
        assert.equal(resource.product, 'catch')
      }
    })
  }

  test(`${name} passes on a path and a query as they were sent`, async () => {
    const inbox = await site().anInbox()
    for (const path of ['/a//b%2Fc;d=1/%C3%A4?q=%20+&a=b%26&a', '/./x/..%2f?', '/%7Euser/~x'])
      await seen(path)

    async function seen(path: string): Promise<void> {
      const { path: at, query } = await site().stored(inbox, path, { method: 'POST' })
      assert.equal(`${at}${query === '' ? '' : `?${query}`}`, path.replace(/\?$/, ''))
    }
  })

  test(`${name} passes on every header of a sender, and adds none`, async () => {
    const inbox = await site().anInbox()
    const headers = {
      'x-signature': 't=1,v1=abc',
      x_signature: 'with an underscore',
      'x-long': 'a'.repeat(12 * 1024),
      authorization: 'Bearer somebody-elses',
      cookie: 'a=1; b=2',
    }
    const event = await site().stored(inbox, '', { method: 'POST', headers, body: 'x' })
    const kept = Object.fromEntries(
      event.headers.map(({ name, value }) => [name.toLowerCase(), value]),
    )
    const { host, connection, ...rest } = kept
    assert.deepEqual(rest, { ...headers, 'content-length': '1' })
  })

  test(`/mcp works behind ${name}`, async (t) => {
    const agent = new Client({ name: 'test', version: '1' })
    t.after(() => agent.close())
    const transport = new StreamableHTTPClientTransport(new URL('/mcp', site().front.url), {
      fetch: site().fetch,
    })
    await agent.connect(transport as never)
    const { tools } = await agent.listTools()
    assert.ok(tools.some(({ name }) => name === 'buy_inbox'))
    const { structuredContent } = await agent.callTool({
      name: 'buy_inbox',
      arguments: { planId: 'spark' },
    })
    const { quote } = structuredContent as { quote: { orderId: string; bolt11: string } }
    await site().service.pay(quote.bolt11)
    const bought = await agent.callTool({
      name: 'check_order',
      arguments: { orderId: quote.orderId },
    })
    assert.ok(JSON.stringify(bought).includes('catch_owner_'))
  })
})

type Offer = { invoice: string }

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
