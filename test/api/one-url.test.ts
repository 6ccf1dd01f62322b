/** A purchase that is one URL: what it shows, and what its credential gets. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { suite, test } from 'node:test'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import { macaroonOf, paymentChallengeOf } from '../support/buying.ts'
import { assertFresh, BUY, FLOWS, look, paid, rowOf, SCHEMES } from '../support/one-url.ts'
import { shareServer } from '../support/shared-server.ts'
import { assertError, capabilityOf, startShop } from '../support/wallet-flow.ts'

const WHISPER = '/api/buy/whisper/spark'

const schemesOf = (lines: string[]): string[] => lines.map((line) => line.split(' ')[0] ?? '')

suite('a purchase of one URL', () => {
  const shared = shareServer()

  test('a plain GET shows both challenges of one order, Payment first, and no order id', async () => {
    const server = await shared()
    const answer = await look(server)
    assert.deepEqual(schemesOf(answer.lines('www-authenticate')), ['Payment', 'L402'])
    assert.deepEqual(answer.lines('content-type'), ['application/problem+json; charset=utf-8'])
    const body = JSON.parse(answer.text)
    const { paymentHash, macaroon, invoice, challenge, request } = body
    assert.equal(decodeInvoice(invoice).paymentHash, paymentHash)
    assert.equal(request.methodDetails.invoice, invoice)
    assert.equal(macaroon, macaroonOf(answer))
    assert.deepEqual(challenge, paymentChallengeOf(answer))
    assert.deepEqual(
      Object.keys(body).sort(),
      [
        ...['amountSats', 'challenge', 'challengeId', 'detail', 'error', 'expiresAt', 'invoice'],
        ...[
          'macaroon',
          'network',
          'paymentHash',
          'planId',
          'priceSats',
          'product',
          'request',
          'status',
        ],
        ...['title', 'type'],
      ].sort(),
    )
    const { order_id: orderId } = await rowOf(server, { paymentHash })
    const shown = answer.whole + Buffer.from(macaroon, 'base64').toString('latin1')
    assert.ok(!shown.includes(String(orderId)))
    assert.ok(answer.lines('www-authenticate').join(', ').length < 4096, 'what every client reads')
  })

  test('the twin of an address shows L402 alone', async () => {
    const server = await shared()
    for (const headers of [{}, { 'accept-payment': 'lightning/charge' }]) {
      const answer = await look(server, { target: `${BUY}/l402`, headers })
      assert.deepEqual(schemesOf(answer.lines('www-authenticate')), ['L402'])
      assert.match(
        answer.header('www-authenticate') ?? '',
        /^L402 macaroon="[A-Za-z0-9+/=]+", invoice="lnbcrt[0-9a-z]+"$/,
      )
      assert.deepEqual(answer.lines('content-type'), ['application/json; charset=utf-8'])
      const { scheme, macaroon, invoice, orderId } = JSON.parse(answer.text)
      assert.deepEqual([scheme, orderId], ['L402', undefined])
      assert.equal(macaroon, macaroonOf(answer))
      assert.match(invoice, /^lnbcrt/)
    }
  })

  test('a client that names its protocol sees that challenge alone', async () => {
    const server = await shared()
    const rows: [headers: Record<string, string>, shown: string[]][] = [
      [{ 'x-payment-protocol': 'payment' }, ['Payment']],
      [{ 'x-payment-protocol': 'L402' }, ['L402']],
      [{ 'accept-payment': 'lightning/charge' }, ['Payment']],
      [{ 'accept-payment': 'tempo/charge' }, ['Payment', 'L402']],
      [{ 'accept-authenticate': 'L402' }, ['L402']],
      [{ 'x-payment-protocol': 'payment', 'accept-authenticate': 'L402' }, ['Payment']],
    ]
    for (const [headers, shown] of rows) {
      const answer = await look(server, { headers })
      assert.equal(answer.status, 402)
      assert.deepEqual(schemesOf(answer.lines('www-authenticate')), shown, JSON.stringify(headers))
    }
    const unknown = await look(server, { headers: { 'x-payment-protocol': 'x402' } })
    assert.deepEqual([unknown.status, unknown.text], [400, '{"error":"unknown payment protocol"}'])
  })

  test('GET, HEAD and POST with nothing or an empty object are one purchase, and the query is ignored', async () => {
    const server = await shared()
    const ways = [
      { method: 'GET' as const },
      { method: 'GET' as const, target: `${BUY}?utm=1&x` },
      { method: 'POST' as const },
      { method: 'POST' as const, body: '{}' },
      { method: 'POST' as const, body: ' { }\n', headers: { 'content-type': 'text/plain' } },
      { method: 'POST' as const, target: `${BUY}?again`, body: '{}' },
      { method: 'GET' as const, target: `${BUY}/l402` },
    ]
    for (const [i, way] of ways.entries()) {
      const order = await paid(server, 'L402', way)
      const texts = new Set<string>()
      for (const back of ways) {
        const answer = await look(server, { ...back, authorization: order.authorization })
        capabilityOf(answer)
        texts.add(answer.text)
      }
      assert.equal(texts.size, 1, `the challenge of way ${i}`)
    }
  })

  test('HEAD shows the headers of the 402 without a body, and GET and POST accept its challenge', async () => {
    const server = await shared()
    for (const scheme of FLOWS) {
      for (const method of ['GET', 'POST'] as const) {
        const head = await look(server, { method: 'HEAD' })
        assert.deepEqual([head.status, head.text], [402, ''])
        assert.deepEqual(schemesOf(head.lines('www-authenticate')), ['Payment', 'L402'])
        const { request } = paymentChallengeOf(head)
        const { methodDetails } = JSON.parse(Buffer.from(request, 'base64url').toString())
        const preimage = await server.pay(methodDetails.invoice)
        const authorization = SCHEMES[scheme](head, preimage)
        capabilityOf(await look(server, { method, authorization }))
      }
    }
  })

  test('every 200 and 402 is private and never stored, and says what it varies by', async () => {
    const server = await shared()
    const order = await paid(server)
    for (const method of ['GET', 'HEAD', 'POST'] as const) {
      for (const authorization of [undefined, order.authorization, 'Payment e30', 'L402 bad']) {
        for (const target of [BUY, `${BUY}/l402`]) {
          const answer = await look(server, { method, target, authorization })
          assert.ok([200, 402].includes(answer.status))
          assert.deepEqual(answer.lines('cache-control'), ['private, no-store'])
          assert.deepEqual(answer.lines('vary'), ['Authorization, Accept, X-Payment-Protocol'])
        }
      }
    }
  })

  test('what is no purchase of one URL is refused, each for its reason', async () => {
    const server = await shared()
    const rows: [refusal: string, method: 'GET' | 'POST' | 'PUT', path: string, body?: string][] = [
      ['400 invalid plan', 'GET', '/api/buy/catch/gold'],
      ['400 invalid plan', 'POST', '/api/buy/pulse/SPARK/l402'],
      ['400 invalid request body', 'POST', BUY, '{"planId":"spark"}'],
      ['400 invalid request body', 'POST', BUY, '[]'],
      ['400 invalid request body', 'POST', BUY, 'null'],
      ['400 invalid request body', 'POST', `${BUY}/l402`, 'x'],
      ['400 request too large', 'POST', BUY, ' '.repeat(5000)],
      ['405 method not allowed', 'GET', WHISPER],
      ['400 invalid ciphertext', 'POST', `${WHISPER}/l402`],
      ['400 invalid ciphertext', 'POST', WHISPER, '{}'],
      ['400 invalid plan', 'POST', '/api/buy/whisper/gold', 'x'.repeat(30)],
      ['404 not found', 'GET', '/api/buy/gate/spark'],
      ['404 not found', 'GET', '/api/buy/catch'],
      ['404 not found', 'GET', `${BUY}/payment`],
      ['405 method not allowed', 'PUT', BUY],
      ['405 method not allowed', 'PUT', `${BUY}/l402`],
    ]
    for (const [refusal, method, target, body = ''] of rows) {
      const answer = await look(server, { method, target, body })
      assertError(answer, refusal as `${number} ${never}`, `${method} ${target} ${body}`)
      const allowed = target === WHISPER ? 'POST' : 'GET, HEAD, POST'
      if (answer.status === 405) assert.equal(answer.header('allow'), allowed)
    }
    const told = await fetch(server.url + BUY, { method: 'POST', body: '{"planId":"spark"}' })
    assert.deepEqual(await told.json(), {
      error: 'invalid request body',
      expected: 'nothing, or {}',
    })
    const encoded = await look(server, { method: 'POST', headers: { 'content-encoding': 'gzip' } })
    assert.deepEqual([encoded.status, encoded.text], [400, '{"error":"unsupported media type"}'])
  })

  for (const scheme of FLOWS) {
    test(`a whisper is sold to ${scheme} with its bytes as the body, and the credential is bound to them`, async (t) => {
      const server = await startShop(t)
      const bytes = { method: 'POST', target: WHISPER, body: randomBytes(64) } as const
      const order = await paid(server, scheme, bytes)
      assert.deepEqual(schemesOf(order.challenge.lines('www-authenticate')), ['Payment', 'L402'])
      const { authorization } = order
      const other = await look(server, { ...bytes, body: randomBytes(64), authorization })
      assertFresh(other, order)
      const answer = await look(server, { ...bytes, authorization })
      const twin = await look(server, { ...bytes, target: `${WHISPER}/l402`, authorization })
      assert.equal(twin.text, answer.text)
      const { publicId, readToken } = JSON.parse(answer.text).resource
      const read = await fetch(`${server.url}/w/${publicId}`, {
        headers: { authorization: `Bearer ${readToken}` },
      })
      assert.deepEqual(Buffer.from(await read.arrayBuffer()), bytes.body)
    })
  }
})
