import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:http2'
import { describe, test } from 'node:test'
import Fastify from 'fastify'
import type { GateQuote } from '../../src/client/index.ts'
import { serve } from '../support/serving.ts'
import { aShop, proofOf } from './shop.ts'

describe('Fastify', () => {
  test('Fastify parses the body as ever, after the payment', async (t) => {
    const shop = await aShop(t)
    const app = Fastify()
    t.after(() => app.close())
    app.post('/render/:name', { preParsing: shop.gate.fastify('render') }, async (request) => ({
      body: request.body,
      sats: shop.gate.receiptOf(request.raw)?.sat,
    }))
    app.get('/ping', { preParsing: shop.gate.fastify('ping') }, async () => 'pong')
    const url = await app.listen({ port: 0 })
    const send = (headers: Record<string, string> = {}) =>
      fetch(`${url}/render/cat?size=2`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: '{"a": 1}',
      })
    const refused = await send()
    assert.equal(refused.status, 402)
    const quote = (await refused.json()) as GateQuote
    const proof = proofOf(quote, await shop.pay(quote.bolt11))
    const answer = await send(proof)
    assert.deepEqual(await answer.json(), { body: { a: 1 }, sats: 50 })
    assert.ok(answer.headers.get('gate-receipt'))
    assert.equal((await send(proof)).status, 409)

    const ping = (await (await fetch(`${url}/ping`)).json()) as GateQuote
    assert.equal(ping.amountSats, 1)
    const pong = await fetch(`${url}/ping`, {
      headers: proofOf(ping, await shop.pay(ping.bolt11)),
    })
    assert.equal(await pong.text(), 'pong')
  })

  test('Fastify over HTTP/2 answers a body that is too large', async (t) => {
    const shop = await aShop(t)
    const app = Fastify({ http2: true })
    app.post('/render/cat', { preParsing: shop.gate.fastify('render') }, async () => 'a cat')
    const session = connect(await app.listen({ port: 0 }))
    t.after(() => {
      session.destroy()
      return app.close()
    })
    const stream = session.request({ ':method': 'POST', ':path': '/render/cat' })
    stream.end('x'.repeat(2 * 1024 * 1024))
    const [head] = await once(stream, 'response')
    assert.equal(head[':status'], 413)
  })
})

describe('Express', () => {
  test('Express has the exact bytes in the body, and the path before it was cut', async (t) => {
    const shop = await aShop(t)
    const bodies: unknown[] = []
    const api = await serve(t, (request, response) => {
      // As a router that is mounted at /render does it.
      const routed = Object.assign(request, { originalUrl: request.url ?? '' })
      routed.url = (request.url ?? '').replace('/render', '')
      shop.gate.express('render')(routed, response, () => {
        bodies.push('body' in request && request.body)
        response.end('a cat')
      })
    })
    const send = (headers: Record<string, string> = {}) =>
      fetch(`${api}/render/cat`, { method: 'POST', headers, body: 'the body' })
    const quote = (await (await send()).json()) as GateQuote
    assert.equal(quote.path, '/render/cat')
    const answer = await send(proofOf(quote, await shop.pay(quote.bolt11)))
    assert.equal(await answer.text(), 'a cat')
    assert.deepEqual(bodies, [Buffer.from('the body')])
  })
})

describe('a body in Express', () => {
  test('a body in Express that a parser has read already is refused, for any body would do', async (t) => {
    const shop = await aShop(t)
    const errors: unknown[] = []
    const api = await serve(t, async (request, response) => {
      for await (const chunk of request) void chunk
      const parsed = Object.assign(request, { body: {} })
      shop.gate.express('render')(parsed, response, (error) => {
        errors.push(error)
        response.end()
      })
    })
    await fetch(`${api}/render/cat`, { method: 'POST', body: 'the body' })
    assert.match(String(errors[0]), /before any body parser/)
    assert.deepEqual(shop.asked, [])
  })

  test('a body that express.raw() has read is bound as it came', async (t) => {
    const shop = await aShop(t)
    const api = await serve(t, async (request, response) => {
      const chunks = await Array.fromAsync(request)
      const parsed = Object.assign(request, { body: Buffer.concat(chunks) })
      shop.gate.express('render')(parsed, response, () => response.end())
    })
    const send = (body: string) => fetch(`${api}/render/cat`, { method: 'POST', body })
    const [one, other] = [await send('a'), await send('b')]
    const digests = [one, other].map(async (answer) => {
      const { requestDigest } = (await answer.json()) as GateQuote
      return requestDigest
    })
    assert.notEqual(await digests[0], await digests[1])
  })

  test('a body in Express that is too large is answered, and the connection ends', async (t) => {
    const shop = await aShop(t)
    const api = await serve(t, (request, response) => {
      shop.gate.express('render')(request, response, () => response.end())
    })
    const answer = await fetch(`${api}/render/cat`, {
      method: 'POST',
      body: 'x'.repeat(2 * 1024 * 1024),
    })
    assert.equal(answer.status, 413)
    assert.deepEqual(await answer.json(), { error: 'request too large' })
  })
})
