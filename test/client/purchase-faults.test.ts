/** What a purchase from a wallet does when something goes wrong: nothing is ever paid twice. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { createMayfly, MayflyError, sealWhisper, WalletError } from '../../src/client/index.ts'
import { books } from '../support/buying.ts'
import { anInvoice } from '../support/invoice.ts'
import { LIES, lyingService } from '../support/lies.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { testWallet } from '../support/wallet.ts'
import { aBuyer, leavingAt, MINUTE } from './buyer.ts'

const ONE_SALE = { orders: 1, invoices: 1, settled: 1, inboxes: 1 }

const isOfOrder = (url: unknown): boolean => String(url).includes('/api/payments/order_')
const isOfCatalog = (url: unknown): boolean => String(url).endsWith('/api/catalog')

test('an answer that is lost is asked for again, and nothing is paid twice', async (t) => {
  const buyer = await aBuyer(t)
  let [asked, lost] = [0, 0]
  // Each answer is lost once, be it a quote, a poll or the capability itself.
  buyer.fetch = async (url, init) => {
    const answer = await fetch(url, init)
    if (asked++ % 2 === 1) return answer
    lost++
    await answer.arrayBuffer()
    throw new TypeError('fetch failed')
  }
  const inbox = await buyer.mayfly().buyCatch({ planId: 'spark' })
  assert.equal((await buyer.server.mayfly.catch(inbox).status()).status, 'active')
  assert.equal(lost, 3)
  assert.equal(buyer.wallet.asked.length, 1)
  assert.deepEqual(await books(buyer.server), ONE_SALE)
})

test('a price above the ceiling is refused before anything is paid', async (t) => {
  const server = await startServer(t)
  const wallet = testWallet(server)
  const mayfly = createMayfly({ baseUrl: server.url, wallet, maxSats: 99 })
  const onInvoice = () => assert.fail('the invoice was shown')
  const refused = { name: 'MayflyError', phrase: 'price above the ceiling', status: 0 }
  await assert.rejects(mayfly.buyCatch({ planId: 'spark', onInvoice }), refused)
  // Such as Number() of a setting that is not set.
  for (const maxSats of [50, Number.NaN]) {
    await assert.rejects(mayfly.buyCatch({ planId: 'spark', maxSats }), refused)
  }
  assert.deepEqual(wallet.asked, [])
  await mayfly.buyCatch({ planId: 'spark', maxSats: 100 })
  assert.equal(wallet.asked.length, 1)
})

test('a wallet that did not pay fails the purchase, which can be taken up', async (t) => {
  const { server, wallet, mayfly, purchase } = await aBuyer(t)
  wallet.next = 'not paid'
  await assert.rejects(mayfly().buyCatch(purchase), (error) => {
    assert.ok(error instanceof MayflyError && error.cause instanceof WalletError)
    return error.phrase === 'payment failed' && error.cause.outcome === 'not paid'
  })
  wallet.next = 'paid'
  await mayfly().buyCatch(purchase)
  assert.equal(wallet.asked[0], wallet.asked[1])
  assert.deepEqual(await books(server), ONE_SALE)
})

test('the order decides where a wallet cannot tell', async (t) => {
  const server = await startServer(t)
  for (const next of ['lost', 'lies'] as const) {
    const wallet = testWallet(server)
    wallet.next = next
    const stages: string[] = []
    const inbox = await server.mayfly.buyCatch({
      planId: 'spark',
      wallet,
      onProgress({ stage, quote }) {
        stages.push(stage)
        if (next === 'lies' && stage === 'uncertain') server.pay(quote.bolt11)
      },
    })
    assert.equal((await server.mayfly.catch(inbox).status()).status, 'active')
    assert.deepEqual(stages, ['invoice', 'paying', 'uncertain'])
    assert.equal(wallet.asked.length, 1)
  }
})

test('an unknown payment is waited for until its quote is dead, and not made again', async (t) => {
  const { server, wallet, buy } = await aBuyer(t)
  wallet.next = 'unknown'
  const bought = buy({
    onProgress: ({ stage }) => stage === 'uncertain' && server.clock.advance(60 * MINUTE),
  })
  await assert.rejects(bought, { phrase: 'order expired', status: 404 })
  assert.equal(wallet.asked.length, 1)
  assert.deepEqual(await books(server), { orders: 1, invoices: 1, settled: 0, inboxes: 0 })
})

test('a network that redirects to its own page after the payment is waited out', async (t) => {
  const buyer = await aBuyer(t)
  let redirects = 0
  buyer.fetch = async (url, init) =>
    isOfOrder(url) && redirects++ === 0
      ? new Response(null, { status: 302, headers: { 'retry-after': '0' } })
      : fetch(url, init)
  const inbox = await buyer.mayfly().buyCatch({ planId: 'spark' })
  assert.equal((await buyer.server.mayfly.catch(inbox).status()).status, 'active')
  assert.equal(buyer.wallet.asked.length, 1)
})

test('a buyer who leaves before the wallet is asked has paid nothing', async (t) => {
  const { wallet, buy } = await aBuyer(t)
  const reason = new Error('changed my mind')
  await assert.rejects(buy(leavingAt('invoice', reason)), reason)
  assert.deepEqual(wallet.asked, [])
})

test('a buyer who leaves while the order is looked up gets the reason, and the wallet is not asked', async (t) => {
  const { wallet, begin, buy } = await aBuyer(t)
  await begin()
  const reason = new Error('changed my mind')
  await assert.rejects(buy({ signal: AbortSignal.abort(reason) }), reason)
  assert.equal(wallet.asked.length, 1)
})

test('a buyer who leaves between two polls does not wait for the next one', async (t) => {
  const buyer = await aBuyer(t)
  let polls = 0
  buyer.fetch = async (url, init) => {
    const answer = await fetch(url, init)
    if (!isOfOrder(url)) return answer
    polls++
    const headers = { ...Object.fromEntries(answer.headers), 'retry-after': '3600' }
    return new Response(await answer.text(), { status: answer.status, headers })
  }
  const leaving = new AbortController()
  const reason = new Error('changed my mind')
  const byHand = { wallet: undefined, signal: leaving.signal }
  const left = assert.rejects(buyer.buy(byHand), reason)
  await until('the first poll', () => polls === 1)
  leaving.abort(reason)
  await left
})

test('a buyer who leaves after the payment is told so, and takes it up with the same key, and bytes of a whisper', async (t) => {
  const { server, mayfly, purchase } = await aBuyer(t)
  const asked = { ...purchase, sealed: await sealWhisper({ data: Buffer.from('once') }) }
  const interrupted = mayfly().buyWhisper({ ...asked, ...leavingAt('paid') })
  await assert.rejects(interrupted, { phrase: 'paid but not collected', status: 0 })
  const { code } = await mayfly().buyWhisper(asked)
  assert.equal(Buffer.from((await server.mayfly.readWhisper(code)).data).toString(), 'once')
  assert.deepEqual(await books(server), { ...ONE_SALE, inboxes: 0 })
})

for (const [name, lie] of Object.entries(LIES)) {
  test(`a service that offers ${name} is paid nothing and shown nothing`, async (t) => {
    const server = await startServer(t)
    const wallet = testWallet(server)
    const service = await lyingService(t, server.url)
    service.lie = lie
    const mayfly = createMayfly({ baseUrl: service.url, wallet, maxSats: 500 })
    const onInvoice = () => assert.fail('the invoice was shown')
    await assert.rejects(mayfly.buyCatch({ planId: 'spark', onInvoice }), { phrase: lie.phrase })
    assert.deepEqual(wallet.asked, [])
  })
}

test('a service is paid nothing whose catalogue is none, or has another price than it asks for', async (t) => {
  const buyer = await aBuyer(t)
  const priced = (priceSats?: unknown) => [{ planId: 'spark', priceSats }]
  let plans: unknown
  buyer.fetch = (url, init) =>
    isOfCatalog(url)
      ? Promise.resolve(Response.json({ products: { catch: { plans } } }))
      : fetch(url, init)
  for (plans of ['none', null, [null], {}, priced('100'), priced(99), priced(101), priced()]) {
    await assert.rejects(buyer.buy(), { phrase: 'price disagrees' }, JSON.stringify(plans))
  }
  assert.deepEqual(buyer.wallet.asked, [])
  // It is looked at before each try: after the invoice was shown, and after the wallet did not pay.
  plans = priced(100)
  await assert.rejects(buyer.buy(leavingAt('invoice')), { name: 'AbortError' })
  plans = priced(99)
  await assert.rejects(buyer.buy(), { phrase: 'price disagrees' })
  plans = priced(100)
  buyer.wallet.next = 'not paid'
  await assert.rejects(buyer.buy(), { phrase: 'payment failed' })
  plans = priced(99)
  await assert.rejects(buyer.buy(), { phrase: 'price disagrees' })
  assert.equal(buyer.wallet.asked.length, 1)
})

for (const [name, answer] of Object.entries({
  'goes away': () => Promise.reject(new TypeError('fetch failed')),
  'has no time for us': async () => new Response('{"error":"rate limited"}', { status: 429 }),
  'never delivers': async () => new Response('{"settled":false}', { status: 402 }),
})) {
  test(`a service that ${name} after the payment is asked for ten minutes`, async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: Date.UTC(2026, 0, 2) })
    t.mock.method(performance, 'now', () => Date.now())
    const preimage = randomBytes(32)
    const paymentHash = createHash('sha256').update(preimage).digest('hex')
    const quote = {
      ...{ orderId: 'order_1', product: 'catch', planId: 'spark', amountSats: 100, paymentHash },
      bolt11: anInvoice({ paymentHash, amountMsat: 100_000 }),
      expiresAt: '2026-01-02T00:15:00Z',
      network: 'regtest',
    }
    const catalog = { products: { catch: { plans: [{ planId: 'spark', priceSats: 100 }] } } }
    let asked = 0
    let isPaid = false
    const pay = async () => {
      isPaid = true
      return { preimage: preimage.toString('hex') }
    }
    const mayfly = createMayfly({
      baseUrl: 'http://mayfly.test',
      wallet: { pay },
      fetch: async (url) => {
        if (isOfCatalog(url)) return Response.json(catalog)
        asked++
        return isPaid ? answer() : Response.json(quote, { status: 402 })
      },
    })
    let outcome: unknown
    mayfly.buyCatch({ planId: 'spark' }).catch((error) => {
      outcome = error
    })
    const turn = () => new Promise((resolve) => setImmediate(resolve))
    // The preimage is hashed on another thread: until the first poll no time may pass.
    while (asked < 2 && outcome === undefined) await turn()
    let seconds = 0
    for (; outcome === undefined; seconds++) {
      await turn()
      t.mock.timers.tick(1000)
    }
    assert.ok(outcome instanceof MayflyError)
    assert.deepEqual([outcome.phrase, outcome.status], ['paid but not collected', 0])
    assert.ok(seconds > 580 && seconds < 640, `${seconds} s`)
    assert.ok(asked > 30)
  })
}

test('a service that never says that an order is over is left when its invoice is', async (t) => {
  for (const [shown, phrase] of [
    [true, 'invoice expired'],
    [false, 'payment outcome unknown'],
  ] as const) {
    const buyer = await aBuyer(t)
    let polls = 0
    buyer.fetch = (url, init) => {
      if (isOfOrder(url) && polls++ > 0) buyer.minutesPassed = 26
      return fetch(url, init)
    }
    buyer.wallet.next = 'unknown'
    await assert.rejects(buyer.buy(shown ? { wallet: undefined } : {}), { phrase })
  }
})

test('a quote that is longer than any is refused, and is not kept', async (t) => {
  const buyer = await aBuyer(t)
  buyer.fetch = async (url, init) => {
    const answer = await fetch(url, init)
    if (answer.status !== 402) return answer
    const quote = { ...((await answer.json()) as object), more: 'x'.repeat(100_000) }
    return Response.json(quote, { status: 402 })
  }
  await assert.rejects(buyer.buy(), { phrase: 'unexpected answer' })
  assert.deepEqual([buyer.wallet.asked, buyer.store.records()], [[], []])
})
