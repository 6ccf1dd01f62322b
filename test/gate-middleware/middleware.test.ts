import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import { describe, type TestContext, test } from 'node:test'
import { fetchWithMpp } from '@getalby/lightning-tools/402'
import Fastify from 'fastify'
import type { GateQuote } from '../../src/client/index.ts'
import { createGate, type FetchHandler, type Gate } from '../../src/gate-middleware/middleware.ts'
import { decodeReceipt } from '../../src/protocol/payment-auth.ts'
import { register } from '../support/gate.ts'
import { startServer } from '../support/server.ts'

const URL_OF_CAT = 'https://api.example.com/render/cat?size=2'

describe('a fetch-style handler', () => {
  test('answers who has paid, and shows him his receipt', async (t) => {
    const shop = await aShop(t)
    const refused = await shop.visit()
    const quote = (await refused.json()) as GateQuote
    assert.equal(refused.status, 402)
    assert.equal(refused.headers.get('cache-control'), 'no-store')
    assert.equal(refused.headers.get('www-authenticate'), null)
    assert.equal(quote.path, '/render/cat?size=2')
    assert.equal(shop.served.length, 0)

    const answer = await shop.visit(proofOf(quote, await shop.pay(quote.bolt11)))
    assert.equal(answer.status, 200)
    assert.equal(await answer.text(), 'a cat')
    assert.equal(answer.headers.get('cache-control'), 'private, no-store')
    const [served] = shop.served
    assert.equal(served?.body, 'the body')
    assert.equal(served?.receipt.ph, quote.paymentHash)
    assert.equal(served?.receipt.route, 'render')
    assert.ok(answer.headers.get('gate-receipt'))
  })

  test('takes the word of the provider for a payment, without a preimage', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const headers = { 'x-gate-intent': quote.intentId }
    const waiting = await shop.visit(headers)
    assert.equal(waiting.status, 402)
    assert.equal(waiting.headers.get('retry-after'), '2')
    assert.equal(((await waiting.json()) as { status: string }).status, 'pending')
    await shop.pay(quote.bolt11)
    shop.clock.advance(2_000)
    assert.equal((await shop.visit(headers)).status, 200)
    assert.equal(shop.served[0]?.receipt.by, 'provider')
  })

  test('is bought by a stock client of the Payment scheme', async (t) => {
    const shop = await aShop(t)
    const api = await serve(t, (request, response) => {
      shop.gate.express('render')(request, response, () => response.end('a cat'))
    })
    const paid: string[] = []
    const wallet = {
      async payInvoice({ invoice }: { invoice: string }) {
        paid.push(invoice)
        return { preimage: await shop.pay(invoice) }
      },
    }
    const answer = await fetchWithMpp(
      `${api}/render/cat?size=2`,
      {
        method: 'POST',
        body: 'the body',
        headers: { 'content-type': 'text/plain', 'x-payment-protocol': 'payment' },
      },
      { wallet },
    )
    assert.equal(answer.status, 200)
    assert.equal(await answer.text(), 'a cat')
    assert.equal(paid.length, 1)
    const receipt = decodeReceipt(answer.headers.get('payment-receipt') ?? '')
    assert.equal(receipt?.status, 'success')
    assert.match(receipt?.reference ?? '', /^[0-9a-f]{64}$/)
  })

  test('shows the Payment challenge to whoever prefers it', async (t) => {
    const shop = await aShop(t)
    for (const headers of [
      { 'x-payment-protocol': 'payment' },
      { 'accept-payment': 'lightning/charge' },
      { authorization: 'Payment e30' },
    ]) {
      const answer = await shop.visit(headers)
      assert.equal(answer.status, 402)
      assert.match(answer.headers.get('www-authenticate') ?? '', /^Payment id="/)
      assert.equal(answer.headers.get('content-type'), 'application/problem+json; charset=utf-8')
    }
  })

  test('gives each visitor an invoice of his own', async (t) => {
    const shop = await aShop(t)
    const headers = { 'idempotency-key': 'one-key-for-all' }
    const quotes = await Promise.all([1, 2, 3].map(() => shop.quote(headers)))
    assert.equal(new Set(quotes.map(({ bolt11 }) => bolt11)).size, 3)
  })

  test('refuses a body above 1 MiB before it asks anybody', async (t) => {
    const shop = await aShop(t)
    const answer = await shop.visit({}, { body: 'x'.repeat(1024 * 1024 + 1) })
    assert.equal(answer.status, 413)
  })

  test('refuses a path that servers read differently', async (t) => {
    const shop = await aShop(t)
    const answer = await shop.visit({}, { url: 'https://api.example.com/render/a%2fb' })
    assert.equal(answer.status, 400)
    assert.deepEqual(await answer.json(), { error: 'invalid binding' })
  })
})

describe('a receipt', () => {
  test('that the payer got himself lets his request in, once', async (t) => {
    const shop = await aShop(t)
    const receipt = await shop.receipt()
    assert.equal((await shop.visit({ 'gate-receipt': receipt })).status, 200)
    const again = await shop.visit({ 'gate-receipt': receipt })
    assert.equal(again.status, 409)
    assert.deepEqual(await again.json(), { error: 'receipt used' })
    assert.equal(again.headers.get('www-authenticate'), null)
    assert.equal(shop.served.length, 1)
  })

  test('lets one of 50 requests at once in', async (t) => {
    const shop = await aShop(t)
    const receipt = await shop.receipt()
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => shop.visit({ 'gate-receipt': receipt })),
    )
    assert.equal(answers.filter(({ status }) => status === 200).length, 1)
    assert.equal(shop.served.length, 1)
  })

  test('may be used again when the handler failed', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const proof = proofOf(quote, await shop.pay(quote.bolt11))
    shop.script.answer = () => new Response('no', { status: 503 })
    assert.equal((await shop.visit(proof)).status, 503)
    shop.script.answer = () => {
      throw new Error('a bug')
    }
    await assert.rejects(shop.visit(proof), /a bug/)
    shop.script.answer = () => new Response('a cat')
    assert.equal((await shop.visit(proof)).status, 200)
    assert.equal((await shop.visit(proof)).status, 409)
  })

  test('for anything else lets nobody in, and asks for no second payment', async (t) => {
    const shop = await aShop(t)
    const receipt = await shop.receipt()
    const [head = '', claims = '', signature = ''] = receipt.split('.')
    const forged = Buffer.from(
      JSON.stringify({ ...JSON.parse(Buffer.from(claims, 'base64url').toString()), jti: 'other' }),
    ).toString('base64url')
    const unsigned = Buffer.from('{"alg":"none","typ":"gate-receipt+jwt"}').toString('base64url')
    const rows: { note: string; headers: Record<string, string>; ask?: Visit }[] = [
      { note: 'another path', headers: {}, ask: { url: 'https://api.example.com/render/dog' } },
      { note: 'another query', headers: {}, ask: { url: `${URL_OF_CAT}&x=1` } },
      { note: 'another method', headers: {}, ask: { method: 'PUT' } },
      { note: 'another body', headers: {}, ask: { body: 'the bod' } },
      { note: 'a forged claim', headers: { 'gate-receipt': `${head}.${forged}.${signature}` } },
      { note: 'no signature', headers: { 'gate-receipt': `${unsigned}.${claims}.` } },
      { note: 'half of it', headers: { 'gate-receipt': `${head}.${claims}` } },
      { note: 'nothing', headers: { 'gate-receipt': '..' } },
    ]
    for (const { note, headers, ask } of rows) {
      const answer = await shop.visit({ 'gate-receipt': receipt, ...headers }, ask)
      assert.equal(answer.status, 403, note)
      assert.deepEqual(await answer.json(), { error: 'invalid receipt' })
    }
    const elsewhere = shop.gate.fetch('other', shop.handler)
    const onAnotherRoute = await elsewhere(aVisit({ 'gate-receipt': receipt }))
    assert.equal(onAnotherRoute.status, 403)
    assert.equal(shop.served.length, 0)
    assert.equal((await shop.visit({ 'gate-receipt': receipt })).status, 200)
  })

  test('of another project, or of another service, lets nobody in', async (t) => {
    const shop = await aShop(t)
    const receipt = await shop.receipt()
    const other = await register(shop)
    for (const options of [
      { ...shop.options, ...other },
      { ...shop.options, issuer: 'https://elsewhere.example' },
    ]) {
      const answer = await createGate(options).fetch(
        'render',
        shop.handler,
      )(aVisit({ 'gate-receipt': receipt }))
      assert.equal(answer.status, 403)
    }
  })

  test('lets nobody in after five minutes', async (t) => {
    const shop = await aShop(t)
    const receipt = await shop.receipt()
    shop.clock.advance(301_000)
    assert.equal((await shop.visit({ 'gate-receipt': receipt })).status, 403)
  })

  test('is verified while the service is away, by the keys at hand', async (t) => {
    const shop = await aShop(t)
    const [first, second] = [await shop.receipt(), await shop.receipt()]
    assert.equal((await shop.visit({ 'gate-receipt': first })).status, 200)
    await shop.stop()
    assert.equal((await shop.visit({ 'gate-receipt': second })).status, 200)
    const unpaid = await shop.visit()
    assert.equal(unpaid.status, 503)
    assert.equal(unpaid.headers.get('retry-after'), '5')
    assert.equal(unpaid.headers.get('www-authenticate'), null)
  })

  test('is verified by a new key after a rotation, and a made-up key costs nothing', async (t) => {
    const environment: Record<string, string> = { MAYFLY_SECRET: '11'.repeat(32) }
    const shop = await aShop(t, environment)
    const before = await shop.receipt()
    assert.equal((await shop.visit({ 'gate-receipt': before })).status, 200)
    environment.MAYFLY_SECRET = `${'22'.repeat(32)},${'11'.repeat(32)}`
    await shop.restart()
    shop.clock.advance(10_000)
    const after = await shop.receipt()
    assert.equal((await shop.visit({ 'gate-receipt': after })).status, 200)

    const head = { alg: 'EdDSA', typ: 'gate-receipt+jwt', kid: 'made-up' }
    const [, claims, signature] = after.split('.')
    const unknown = `${Buffer.from(JSON.stringify(head)).toString('base64url')}.${claims}.${signature}`
    shop.asked.length = 0
    for (let i = 0; i < 20; i++) await shop.visit({ 'gate-receipt': unknown })
    assert.deepEqual(shop.asked, [])
    shop.clock.advance(10_000)
    for (let i = 0; i < 20; i++) await shop.visit({ 'gate-receipt': unknown })
    assert.deepEqual(shop.asked, ['/.well-known/gate-jwks.json'])
  })
})

describe('a proof', () => {
  test('that was made for another request is none: this request has a price of its own', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const proof = proofOf(quote, await shop.pay(quote.bolt11))
    const dog = { url: 'https://api.example.com/render/dog' }
    const answer = await shop.visit(proof, dog)
    const asked = (await answer.json()) as GateQuote
    assert.equal(answer.status, 402)
    assert.equal(asked.path, '/render/dog')
    assert.notEqual(asked.intentId, quote.intentId)
    // Nothing was spent on that: the credit is still there, and the proof is still good.
    assert.equal((await shop.visit(proof)).status, 200)
  })

  test('with another body is for another request, and is not lost', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const proof = proofOf(quote, await shop.pay(quote.bolt11))
    assert.equal((await shop.visit(proof, { body: 'another body' })).status, 403)
    assert.equal((await shop.visit(proof)).status, 200)
  })

  test('that is wrong or unreadable lets nobody in', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    for (const preimage of ['00'.repeat(32), 'zz'.repeat(32), 'ab']) {
      assert.equal((await shop.visit(proofOf(quote, preimage))).status, 402)
    }
    assert.equal((await shop.visit({ 'x-gate-intent': 'x' })).status, 402)
    assert.equal((await shop.visit({ authorization: 'Payment !' })).status, 402)
    assert.equal(shop.served.length, 0)
  })
})

describe('what is not the fault of the visitor', () => {
  test('is 503 without an invitation to pay: no credits, suspended, a wrong capability', async (t) => {
    const shop = await aShop(t, {}, { credits: 0 })
    const unavailable = async (answer: Response) => {
      assert.equal(answer.status, 503)
      assert.deepEqual(await answer.json(), { error: 'payment unavailable' })
      assert.equal(answer.headers.get('www-authenticate'), null)
    }
    await unavailable(await shop.visit())
    const gate = createGate({ ...shop.options, capability: 'gate_key_wrong' })
    await unavailable(await gate.fetch('render', shop.handler)(aVisit()))
    const nowhere = createGate({ ...shop.options, url: 'http://127.0.0.1:1' })
    await unavailable(await nowhere.fetch('render', shop.handler)(aVisit()))
  })

  test('a service that answers nonsense lets nobody in', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    for (const [status, body] of [
      [200, '{}'],
      [200, '{"settled":false,"intentId":"x"}'],
      [200, '{"settled":true,"intentId":"x","receipt":"x.y.z"}'],
      [200, '<html>'],
      [302, ''],
    ] as const) {
      const gate = createGate({
        ...shop.options,
        fetch: async (input, init) =>
          String(input).endsWith('.json')
            ? fetch(input, init)
            : new Response(body, { status, headers: { location: '/' } }),
      })
      const handler = gate.fetch('render', shop.handler)
      const answer = await handler(aVisit(proofOf(quote, 'ab'.repeat(32))))
      assert.ok(answer.status === 503 || answer.status === 403, `${status} ${body}`)
    }
    assert.equal(shop.served.length, 0)
  })

  test('a guard that is full lets nobody in rather than somebody twice', async (t) => {
    const shop = await aShop(t)
    const gate = createGate({
      ...shop.options,
      replay: { claim: () => false, release: () => {} },
    })
    const answer = await gate.fetch(
      'render',
      shop.handler,
    )(aVisit({ 'gate-receipt': await shop.receipt() }))
    assert.equal(answer.status, 409)
  })
})

describe('Fastify', () => {
  test('parses the body as ever, after the payment', async (t) => {
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

  test('gives the receipt back when the handler fails', async (t) => {
    const shop = await aShop(t)
    let isBroken = true
    const app = Fastify()
    t.after(() => app.close())
    app.get('/ping', { preParsing: shop.gate.fastify('ping') }, async () => {
      if (isBroken) throw new Error('a bug')
      return 'pong'
    })
    const url = await app.listen({ port: 0 })
    const ping = (await (await fetch(`${url}/ping`)).json()) as GateQuote
    const headers = proofOf(ping, await shop.pay(ping.bolt11))
    assert.equal((await fetch(`${url}/ping`, { headers })).status, 500)
    isBroken = false
    assert.equal((await fetch(`${url}/ping`, { headers })).status, 200)
  })
})

describe('Express', () => {
  test('finds the exact bytes in the body, and the path before it was cut', async (t) => {
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
  test('that a parser has read already is refused, for any body would do', async (t) => {
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

  test('that express.raw() has read is bound as it came', async (t) => {
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

  test('that is too large is answered, and the connection ends', async (t) => {
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

type Visit = { method?: string; url?: string; body?: string }

function aVisit(headers: Record<string, string> = {}, ask: Visit = {}): Request {
  const { method = 'POST', url = URL_OF_CAT, body = 'the body' } = ask
  return new Request(url, { method, headers, body })
}

const proofOf = ({ intentId }: GateQuote, preimage: string): Record<string, string> => ({
  'x-gate-intent': intentId,
  'x-gate-preimage': preimage,
})

/** A GATE with a project, and its API with one route, whose clock is GATE's. */
async function aShop(t: TestContext, environment: Record<string, string> = {}, project = {}) {
  environment.MAYFLY_GATE = 'on'
  // What is signed has the port in it otherwise, and a restart picks another.
  environment.MAYFLY_BASE_URL = 'http://127.0.0.1:8402'
  const server = await startServer(t, environment)
  const own = await register(server, project)
  const asked: string[] = []
  const options = {
    url: environment.MAYFLY_BASE_URL,
    projectId: own.projectId,
    capability: own.capability,
    now: server.clock.now,
    fetch: ((input, init) => {
      const { pathname } = new URL(String(input))
      asked.push(pathname)
      return fetch(server.url + pathname, init)
    }) satisfies typeof fetch,
  }
  const gate: Gate = createGate(options)
  const served: { body: string; receipt: Parameters<FetchHandler>[1] }[] = []
  const script: { answer: () => Response } = { answer: () => new Response('a cat') }
  const handler: FetchHandler = async (request, receipt) => {
    served.push({ body: await request.text(), receipt })
    return script.answer()
  }
  const visit = (headers: Record<string, string> = {}, ask: Visit = {}): Promise<Response> =>
    gate.fetch('render', handler)(aVisit(headers, ask))
  async function quote(headers: Record<string, string> = {}): Promise<GateQuote> {
    return (await (await visit(headers)).json()) as GateQuote
  }
  /** A receipt that the payer had the service make, without asking the API. */
  async function receipt(): Promise<string> {
    const { intentId, bolt11 } = await quote()
    const outcome = await server.mayfly.gate(own).prove(intentId, await server.pay(bolt11))
    return outcome.settled ? outcome.receipt : ''
  }
  return { ...server, options, gate, asked, served, script, handler, visit, quote, receipt }
}

async function serve(
  t: TestContext,
  listener: Parameters<typeof createServer>[1],
): Promise<string> {
  const server: Server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`
}
