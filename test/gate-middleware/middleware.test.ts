import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fetchWithMpp } from '@getalby/lightning-tools/402'
import type { GateQuote } from '../../src/client/index.ts'
import { createGate, fileStore } from '../../src/gate-middleware/middleware.ts'
import { decodeReceipt } from '../../src/protocol/payment-auth.ts'
import { temporaryFolder } from '../support/folder.ts'
import { serve } from '../support/serving.ts'
import { query } from '../support/store.ts'
import { aShop, aVisit, proofOf, URL_OF_CAT } from './shop.ts'

describe('a fetch-style handler', () => {
  test('a fetch-style handler answers a visitor who has paid, and shows the receipt', async (t) => {
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

  test('a fetch-style handler takes the word of the provider for a payment, without a preimage', async (t) => {
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

  test('a fetch-style handler is bought by a stock client of the Payment scheme', async (t) => {
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

  test('a fetch-style handler shows the Payment challenge to whoever prefers it', async (t) => {
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

  test('a fetch-style handler that fails has spent the payment of who does not take its answer whole', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const proof = proofOf(quote, await shop.pay(quote.bolt11))
    const endless = () => new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(1)) })
    shop.script.answer = () => new Response(endless(), { status: 500 })
    await (await shop.visit(proof)).body?.cancel()
    const again = await shop.visit(proof)
    assert.equal(again.status, 409)
    assert.deepEqual(await again.json(), { error: 'receipt used' })
    assert.equal(shop.served.length, 1)
  })

  test('a fetch-style handler gives each visitor an invoice of their own', async (t) => {
    const shop = await aShop(t)
    const headers = { 'idempotency-key': 'one-key-for-all' }
    const quotes = await Promise.all([1, 2, 3].map(() => shop.quote(headers)))
    assert.equal(new Set(quotes.map(({ bolt11 }) => bolt11)).size, 3)
  })

  test('a fetch-style handler refuses a body above 1 MiB before it asks anybody', async (t) => {
    const shop = await aShop(t)
    const answer = await shop.visit({}, { body: 'x'.repeat(1024 * 1024 + 1) })
    assert.equal(answer.status, 413)
  })

  test('a fetch-style handler refuses a path that servers read differently', async (t) => {
    const shop = await aShop(t)
    const answer = await shop.visit({}, { url: 'https://api.example.com/render/a%2fb' })
    assert.equal(answer.status, 400)
    assert.deepEqual(await answer.json(), { error: 'invalid binding' })
  })
})

const PROOFS = [
  { 'x-gate-intent': `gate_intent_${'0'.repeat(22)}` },
  { 'x-gate-intent': `gate_intent_${'0'.repeat(22)}`, 'x-gate-preimage': '00'.repeat(32) },
]

test('the network of a visitor is told to the service, and the address is not; a proxy stands for nobody', async (t) => {
  const shop = await aShop(t)
  const told: (string | null)[] = []
  const options: typeof shop.options = {
    ...shop.options,
    fetch: (input, init) => {
      told.push(new Headers(init?.headers).get('x-gate-visitor'))
      return shop.options.fetch(input, init)
    },
  }
  const addresses = ['8.8.4.4', '2600:1:2:3::4', 'unknown', '']
  const visitorAddress = (): string | null => addresses.shift() ?? null
  const gate = createGate({ ...options, visitorAddress })
  for (let i = 0; i < 5; i++) await gate.fetch('render', shop.handler)(aVisit())
  assert.deepEqual(told, ['8.8.4.0/24', '2600:1:2::/48', null, null, null])
  // Each way to prove a payment takes from a limit of its own, too.
  for (const proof of PROOFS) {
    told.length = 0
    addresses.push('8.8.4.4')
    await gate.fetch('render', shop.handler)(aVisit(proof))
    assert.ok(told.length > 0)
    assert.deepEqual(new Set(told), new Set(['8.8.4.0/24']))
  }
  told.length = 0
  const plain = createGate(options)
  const api = await serve(t, (request, response) => {
    plain.express('render')(request, response, () => response.end())
  })
  await fetch(`${api}/render/cat`, { method: 'POST' })
  assert.deepEqual(told, [null])
})

describe('a proof', () => {
  const DOG = { url: 'https://api.example.com/render/dog' }

  test('a proof of a payment for another request is never answered with an invoice, and is not lost', async (t) => {
    const shop = await aShop(t)
    // Only a store that is older than the receipt can say that it let nobody in.
    const store = fileStore(await temporaryFolder(t), shop.clock.now)
    const paid = createGate({ ...shop.options, store }).fetch('render', shop.handler)
    shop.clock.advance(120_000)
    const quote = await shop.quote()
    const proof = proofOf(quote, await shop.pay(quote.bolt11))
    await refusedWithoutInvoice(await paid(aVisit(proof, DOG)))
    const { 'x-gate-preimage': _none, ...intentAlone } = proof
    await refusedWithoutInvoice(await paid(aVisit(intentAlone, DOG)))
    // Later than the receipt of that visit is good for, which let nobody in.
    shop.clock.advance(301_000)
    assert.equal((await paid(aVisit(proof))).status, 200)
    assert.equal((await paid(aVisit(proof))).status, 409)
  })

  test('a proof that names an unpaid intent counts for nothing: this request has a price of its own', async (t) => {
    const shop = await aShop(t)
    const { intentId } = await shop.quote()
    const answer = await shop.visit({ 'x-gate-intent': intentId }, DOG)
    assert.equal(answer.status, 402)
    assert.equal(((await answer.json()) as GateQuote).path, '/render/dog')
    const unknown = await shop.visit({ 'x-gate-intent': `gate_intent_${'0'.repeat(22)}` })
    assert.equal(((await unknown.json()) as GateQuote).amountSats, 50)
  })

  test('a proof of a payment that a restored Mayfly has lost shows no invoice', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const proof = proofOf(quote, await shop.pay(quote.bolt11))
    const authorization = await (await shop.challenge()).pay()
    await query(shop, 'delete from gate_intent')
    for (const headers of [proof, { authorization }]) {
      const answer = await shop.visit(headers)
      assert.equal(answer.status, 403)
      assert.deepEqual(await answer.json(), { error: 'intent mismatch' })
    }
    assert.equal(shop.served.length, 0)
  })

  test('a proof is honoured after MAYFLY_BASE_URL changed: nobody is asked to pay again', async (t) => {
    const environment: Record<string, string> = {}
    const shop = await aShop(t, environment)
    const [quote, challenged] = [await shop.quote(), await shop.challenge()]
    environment.MAYFLY_SIMULATOR = 'public'
    environment.MAYFLY_BASE_URL = 'https://new.example'
    await shop.restart()
    const proof = proofOf(quote, await shop.pay(quote.bolt11))
    assert.equal((await shop.visit(proof)).status, 200)
    const answer = await shop.visit({ authorization: await challenged.pay() })
    assert.equal(answer.status, 200)
    assert.ok(answer.headers.get('payment-receipt'))
  })

  test('a proof whose challenge nobody knows any more is honoured for its preimage', async (t) => {
    const environment: Record<string, string> = { MAYFLY_SECRET: '11'.repeat(32) }
    const shop = await aShop(t, environment)
    const challenged = await shop.challenge()
    const authorization = await challenged.pay()
    environment.MAYFLY_SECRET = `${'22'.repeat(32)},${'33'.repeat(32)}`
    shop.clock.advance(24 * 3600_000)
    await shop.restart()
    const answer = await shop.visit({ authorization })
    assert.equal(answer.status, 200)
    // We do not sign for a challenge that we do not know.
    assert.equal(answer.headers.get('payment-receipt'), null)
  })

  test('a proof with a wrong preimage for an intent that is paid is told so, and shows no invoice', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    assert.equal((await shop.visit(proofOf(quote, await shop.pay(quote.bolt11)))).status, 200)
    const answer = await shop.visit(proofOf(quote, '00'.repeat(32)))
    assert.equal(answer.status, 403)
    assert.deepEqual(await answer.json(), { error: 'wrong preimage' })
  })

  test('a wrong preimage of an unpaid intent lets nobody in, and shows nothing new to pay', async (t) => {
    const shop = await aShop(t)
    const answer = await shop.visit(proofOf(await shop.quote(), '00'.repeat(32)))
    assert.equal(answer.status, 402)
    assert.equal((await answer.json()).error, 'payment not verified')
    assert.equal(shop.served.length, 0)
  })

  test('a credential that names no intent of GATE is one of another service, and is asked to pay', async (t) => {
    const shop = await aShop(t)
    for (const authorization of ['Payment !', 'Payment e30', 'Payment a="b", c="d"', 'Bearer x']) {
      const answer = await shop.visit({ authorization })
      assert.equal(answer.status, 402, authorization)
    }
  })

  test('a proof of a payment that is unreadable, or comes twice, is told so and never asked to pay again', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const preimage = await shop.pay(quote.bolt11)
    const { pay } = await shop.challenge()
    const credential = await pay()
    const { intentId } = quote
    const parsed = JSON.parse(Buffer.from(credential.slice(8), 'base64url').toString('utf8'))
    const without = { ...parsed, payload: { preimage: '0xabc' } }
    const unreadable = `Payment ${Buffer.from(JSON.stringify(without)).toString('base64url')}`
    const asked = shop.asked.length
    const bytes = Buffer.from(preimage, 'hex')
    const proofs: [string, string][][] = [
      ...[bytes.toString('base64'), bytes.toString('base64url'), `0x${preimage}`, '', 'ab'].map(
        (text) => Object.entries(proofOf(quote, text)),
      ),
      [...Object.entries(proofOf(quote, preimage)), ['x-gate-preimage', preimage]],
      [...Object.entries(proofOf(quote, preimage)), ['x-gate-intent', intentId]],
      [['x-gate-preimage', preimage]],
      [['x-gate-intent', `${intentId}.`]],
      [['authorization', unreadable]],
      [
        ['authorization', credential],
        ['authorization', credential],
      ],
      [
        ['authorization', 'Basic dTpw'],
        ['authorization', credential],
      ],
      [['gate-receipt', 'x'.repeat(9000)]],
    ]
    for (const lines of proofs) {
      const headers = new Headers()
      for (const [name, value] of lines) headers.append(name, value)
      const request = new Request(URL_OF_CAT, { method: 'POST', headers, body: 'the body' })
      const answer = await shop.gate.fetch('render', shop.handler)(request)
      const body = await answer.text()
      assert.equal(answer.status, 401, JSON.stringify(lines))
      assert.deepEqual(JSON.parse(body).error, 'unreadable proof')
      assert.match(body, /64 hex digits/)
      assert.equal(answer.headers.get('www-authenticate'), 'Payment realm="gate"')
    }
    assert.equal(shop.asked.length, asked, 'no intent was made')
    assert.equal((await shop.visit(proofOf(quote, preimage.toUpperCase()))).status, 200)
    assert.equal((await shop.visit({ authorization: credential })).status, 200)
  })
})

describe('a failure that is not the fault of the visitor', () => {
  test('a visitor gets 503 without an invoice for what the API did wrong: no credits, suspended, a wrong capability', async (t) => {
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

  for (const [why, options, told] of [
    ['its capability', { capability: 'gate_key_wrong' }, /answers 401, invalid project capability/],
    ['its address', { url: 'http://127.0.0.1:1', fetch }, /service unreachable/],
    ['its store', { store: fileStore('/dev/null/nowhere') }, /ENOTDIR/],
  ] as const) {
    test(`an API asks nobody to pay and is told why, once a minute: ${why}`, async (t) => {
      const shop = await aShop(t)
      const sentences: string[] = []
      const onProblem = (sentence: string) => void sentences.push(sentence)
      const gate = createGate({ ...shop.options, ...options, onProblem })
      const visit = () => gate.fetch('render', shop.handler)(aVisit())
      assert.equal((await visit()).status, 503)
      await visit()
      assert.equal(sentences.length, 1)
      assert.match(sentences[0] ?? '', told)
      shop.clock.advance(60_000)
      await visit()
      assert.equal(sentences.length, 2)
    })
  }

  test('an API is not told of a visitor who asks too often', async (t) => {
    const shop = await aShop(t)
    const gate = createGate({
      ...shop.options,
      fetch: async () => new Response('{"error":"rate limited"}', { status: 429 }),
      onProblem: assert.fail,
    })
    assert.equal((await gate.fetch('render', shop.handler)(aVisit())).status, 503)
  })

  test('a service that answers nonsense, or refuses the project, lets nobody in', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    for (const [status, body, told] of [
      [200, '{}', 503],
      [200, '{"settled":false,"intentId":"x"}', 503],
      [200, '{"settled":true,"intentId":"x","receipt":"x.y.z"}', 403],
      [200, '<html>', 503],
      [302, '', 503],
      // Who may have paid comes again.
      [401, '{"error":"invalid project capability"}', 503],
      [429, '{"error":"rate limited"}', 503],
    ] as const) {
      const gate = createGate({
        ...shop.options,
        fetch: async (input, init) =>
          String(input).endsWith('.json')
            ? shop.options.fetch(input, init)
            : new Response(body, { status, headers: { location: '/' } }),
      })
      const handler = gate.fetch('render', shop.handler)
      const answer = await handler(aVisit(proofOf(quote, 'ab'.repeat(32))))
      assert.equal(answer.status, told, `${status} ${body}`)
    }
    assert.equal(shop.served.length, 0)
  })
})

async function refusedWithoutInvoice(answer: Response): Promise<void> {
  assert.equal(answer.status, 403)
  assert.equal(answer.headers.get('www-authenticate'), null)
  assert.deepEqual(await answer.json(), { error: 'invalid receipt' })
}
