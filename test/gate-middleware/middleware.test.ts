import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fetchWithMpp } from '@getalby/lightning-tools/402'
import type { GateQuote } from '../../src/client/index.ts'
import { createGate } from '../../src/gate-middleware/middleware.ts'
import { decodeReceipt } from '../../src/protocol/payment-auth.ts'
import { aShop, aVisit, proofOf, serve } from '../support/gate-middleware.ts'

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
