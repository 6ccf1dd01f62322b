/** What a purchase from a wallet does when something goes wrong: nothing is ever paid twice. */
import assert from 'node:assert/strict'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { createHttp } from '../../src/client/http.ts'
import {
  createMayfly,
  MayflyError,
  sealWhisper,
  type Wallet,
  WalletError,
} from '../../src/client/index.ts'
import { createPayments, planOrder } from '../../src/client/payments.ts'
import { books } from '../support/buying.ts'
import { anInvoice, LIES, lyingService } from '../support/lies.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { testWallet } from '../support/wallet.ts'

const ONE_SALE = { orders: 1, invoices: 1, settled: 1, inboxes: 1 }
const HOUR = 3_600_000

test(`an answer that is lost is asked for again, and nothing is paid twice`, async (t) => {
  const server = await startServer(t)
  const wallet = testWallet(server)
  let lost = 0
  const mayfly = createMayfly({
    baseUrl: server.url,
    wallet,
    // Each answer is lost once, be it a quote, a poll or the capability itself.
    fetch: lossy((n) => n % 2 === 0 && ++lost > 0),
  })
  const inbox = await mayfly.buyCatch({ planId: 'spark' })
  assert.equal((await server.mayfly.catch(inbox).status()).status, 'active')
  assert.equal(lost, 3)
  assert.equal(wallet.asked.length, 1)
  assert.deepEqual(await books(server), ONE_SALE)
})

test(`a price above the ceiling is refused before anything is paid`, async (t) => {
  const server = await startServer(t)
  const wallet = testWallet(server)
  const mayfly = createMayfly({ baseUrl: server.url, wallet, maxSats: 99 })
  const onInvoice = () => assert.fail('the invoice was shown')
  const refused = { name: 'MayflyError', phrase: 'price above the ceiling', status: 0 }
  await assert.rejects(mayfly.buyCatch({ planId: 'spark', onInvoice }), refused)
  await assert.rejects(mayfly.buyCatch({ planId: 'spark', maxSats: 50 }), refused)
  // Such as Number() of a setting that is not set.
  await assert.rejects(mayfly.buyCatch({ planId: 'spark', maxSats: Number.NaN }), refused)
  assert.deepEqual(wallet.asked, [])
  await mayfly.buyCatch({ planId: 'spark', maxSats: 100 })
  assert.equal(wallet.asked.length, 1)
})

test(`a wallet that did not pay fails the purchase, which can be taken up`, async (t) => {
  const server = await startServer(t)
  const wallet = testWallet(server)
  wallet.next = 'not paid'
  const purchase = { planId: 'spark', wallet, idempotencyKey: randomUUID() } as const
  await assert.rejects(server.mayfly.buyCatch(purchase), (error) => {
    assert.ok(error instanceof MayflyError && error.cause instanceof WalletError)
    return error.phrase === 'payment failed' && error.cause.outcome === 'not paid'
  })
  wallet.next = 'paid'
  await server.mayfly.buyCatch(purchase)
  assert.equal(wallet.asked[0], wallet.asked[1])
  assert.deepEqual(await books(server), ONE_SALE)
})

test(`the order decides where a wallet cannot tell`, async (t) => {
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
  const server = await startServer(t)
  const wallet = testWallet(server)
  wallet.next = 'unknown'
  const bought = server.mayfly.buyCatch({
    planId: 'spark',
    wallet,
    onProgress: ({ stage }) => stage === 'uncertain' && server.clock.advance(HOUR),
  })
  await assert.rejects(bought, { phrase: 'order expired', status: 404 })
  assert.equal(wallet.asked.length, 1)
  assert.deepEqual(await books(server), { orders: 1, invoices: 1, settled: 0, inboxes: 0 })
})

test('a network that redirects to its own page after the payment is waited out', async (t) => {
  const server = await startServer(t)
  const wallet = testWallet(server)
  let redirects = 0
  const mayfly = createMayfly({
    baseUrl: server.url,
    wallet,
    fetch: async (url, init) => {
      const isPoll = init?.method === 'GET' && String(url).includes('/api/payments/')
      if (!isPoll || redirects++ > 0) return fetch(url, init)
      return new Response(null, { status: 302, headers: { 'retry-after': '0' } })
    },
  })
  const inbox = await mayfly.buyCatch({ planId: 'spark' })
  assert.equal((await server.mayfly.catch(inbox).status()).status, 'active')
  assert.equal(wallet.asked.length, 1)
})

test('a buyer who aborts before the wallet is asked has paid nothing', async (t) => {
  const server = await startServer(t)
  const wallet = testWallet(server)
  const leaving = new AbortController()
  const reason = new Error('changed my mind')
  const bought = server.mayfly.buyCatch({
    planId: 'spark',
    wallet,
    signal: leaving.signal,
    onInvoice: () => leaving.abort(reason),
  })
  await assert.rejects(bought, reason)
  assert.deepEqual(wallet.asked, [])
})

test('a buyer who aborts after the payment is told so, and takes it up with the same key', async (t) => {
  const server = await startServer(t)
  const wallet = testWallet(server)
  const leaving = new AbortController()
  const idempotencyKey = randomUUID()
  const purchase = { planId: 'spark', wallet, idempotencyKey } as const
  const interrupted = server.mayfly.buyCatch({
    ...purchase,
    signal: leaving.signal,
    onProgress: ({ stage }) => stage === 'paid' && leaving.abort(),
  })
  await assert.rejects(interrupted, { phrase: 'paid but not collected', status: 0 })
  const inbox = await server.mayfly.buyCatch(purchase)
  assert.equal((await server.mayfly.catch(inbox).status()).status, 'active')
  assert.deepEqual(await books(server), ONE_SALE)
})

test('a buyer who aborts while the order is looked up gets the reason, and the wallet is not asked', async (t) => {
  const server = await startServer(t)
  const wallet = testWallet(server)
  wallet.next = 'unknown'
  const leaving = new AbortController()
  const reason = new Error('changed my mind')
  const purchase = {
    planId: 'spark',
    wallet,
    idempotencyKey: randomUUID(),
    signal: leaving.signal,
    onProgress: ({ stage }: { stage: string }) => stage === 'uncertain' && leaving.abort(reason),
  } as const
  await assert.rejects(server.mayfly.buyCatch(purchase), { phrase: 'payment outcome unknown' })
  await assert.rejects(server.mayfly.buyCatch(purchase), reason)
  assert.equal(wallet.asked.length, 1)
})

test('a buyer who aborts between two polls does not wait for the next one', async (t) => {
  const server = await startServer(t)
  let polls = 0
  const mayfly = createMayfly({
    baseUrl: server.url,
    async fetch(url, options) {
      const answer = await fetch(url, options)
      if (!String(url).includes('/order_')) return answer
      polls++
      const headers = { ...Object.fromEntries(answer.headers), 'retry-after': '3600' }
      return new Response(await answer.text(), { status: answer.status, headers })
    },
  })
  const leaving = new AbortController()
  const { signal } = leaving
  let left: unknown
  const onInvoice = () => undefined
  void mayfly.buyCatch({ planId: 'spark', onInvoice, signal }).catch((error: unknown) => {
    left = error
  })
  await until('the first poll', () => polls === 1)
  const reason = new Error('changed my mind')
  leaving.abort(reason)
  await until('the end', () => left !== undefined)
  assert.equal(left, reason)
})

test('a whisper is taken up with the same key and the same bytes', async (t) => {
  const server = await startServer(t)
  const wallet = testWallet(server)
  const sealed = await sealWhisper({ data: Buffer.from('once') })
  const purchase = { planId: 'spark', wallet, sealed, idempotencyKey: randomUUID() } as const
  const leaving = new AbortController()
  const interrupted = server.mayfly.buyWhisper({
    ...purchase,
    signal: leaving.signal,
    onProgress: ({ stage }) => stage === 'paid' && leaving.abort(),
  })
  await assert.rejects(interrupted, { phrase: 'paid but not collected' })
  const { code } = await server.mayfly.buyWhisper(purchase)
  assert.equal(Buffer.from((await server.mayfly.readWhisper(code)).data).toString(), 'once')
  const { orders, invoices, settled } = await books(server)
  assert.deepEqual({ orders, invoices, settled }, { orders: 1, invoices: 1, settled: 1 })
})

test('a second invoice after the payment is never paid', async (t) => {
  const server = await startServer(t)
  const wallet = testWallet(server)
  // The order that is paid is answered as if it were another purchase.
  const mayfly = createMayfly({
    baseUrl: server.url,
    wallet,
    fetch: (url, init) =>
      init?.method === 'GET' && String(url).includes('/api/payments/')
        ? fetch(`${server.url}/api/payments/catch`, {
            method: 'POST',
            headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID() },
            body: '{"planId":"spark"}',
          })
        : fetch(url, init),
  })
  const idempotencyKey = randomUUID()
  await assert.rejects(mayfly.buyCatch({ planId: 'spark', idempotencyKey }), {
    phrase: 'second payment refused',
    status: 402,
  })
  assert.equal(wallet.asked.length, 1)
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

test('a service whose catalogue is none is paid nothing', async (t) => {
  const server = await startServer(t)
  for (const plans of ['none', null, [null], {}, [{ planId: 'spark', priceSats: '100' }]]) {
    const wallet = testWallet(server)
    const mayfly = createMayfly({
      baseUrl: server.url,
      wallet,
      fetch: (url, init) =>
        String(url).endsWith('/api/catalog')
          ? Promise.resolve(Response.json({ products: { catch: { plans } } }))
          : fetch(url, init),
    })
    await assert.rejects(mayfly.buyCatch({ planId: 'spark' }), { phrase: 'price disagrees' })
    assert.deepEqual(wallet.asked, [])
  }
})

test('a service that asks for another price than its catalogue says is paid nothing', async (t) => {
  const server = await startServer(t)
  for (const price of [99, 101, undefined]) {
    const wallet = testWallet(server)
    const mayfly = createMayfly({
      baseUrl: server.url,
      wallet,
      fetch: withPrice(() => price),
    })
    await assert.rejects(mayfly.buyCatch({ planId: 'spark' }), {
      phrase: 'price disagrees',
    })
    assert.deepEqual(wallet.asked, [])
  }
})

test('a purchase that failed is not tried again at another price than the catalogue says by then', async (t) => {
  const server = await startServer(t)
  const wallet = testWallet(server)
  wallet.next = 'not paid'
  let price = 100
  const mayfly = createMayfly({
    baseUrl: server.url,
    wallet,
    fetch: withPrice(() => price),
  })
  const purchase = { planId: 'spark', idempotencyKey: randomUUID() } as const
  await assert.rejects(mayfly.buyCatch(purchase), { phrase: 'payment failed' })
  price = 99
  await assert.rejects(mayfly.buyCatch(purchase), { phrase: 'price disagrees' })
  assert.equal(wallet.asked.length, 1)
})

test('the fee that a wallet has paid is kept with the purchase', async (t) => {
  const server = await startServer(t)
  const wallet = testWallet(server)
  const kept: (number | undefined)[] = []
  const mayfly = createMayfly({
    baseUrl: server.url,
    wallet: {
      ...wallet,
      pay: async (bolt11, options) => ({ ...(await wallet.pay(bolt11, options)), feeMsat: 1_234 }),
    },
    store: {
      load: async () => null,
      save: async ({ state, feeMsat }) => {
        if (state === 'paid') kept.push(feeMsat)
        return true
      },
    },
  })
  await mayfly.buyCatch({ planId: 'spark' })
  assert.deepEqual(kept, [1_234])
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
    const bolt11 = anInvoice({ paymentHash, amountMsat: 100_000 })
    const quote = {
      orderId: 'order_1',
      product: 'catch',
      planId: 'spark',
      amountSats: 100,
      bolt11,
      paymentHash,
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
        if (String(url).endsWith('/api/catalog')) return new Response(JSON.stringify(catalog))
        asked++
        return isPaid ? answer() : new Response(JSON.stringify(quote), { status: 402 })
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

/** Loses the answers that it is asked to, after the service has acted on the request. */
function lossy(isLost: (n: number) => boolean): typeof globalThis.fetch {
  let n = 0
  return async (input, init) => {
    const answer = await fetch(input, init)
    if (!isLost(n++)) return answer
    await answer.arrayBuffer()
    throw new TypeError('fetch failed')
  }
}

test('a service that never says that an order is over is left when its invoice is', async (t) => {
  const server = await startServer(t)
  let passed = 0
  let polls = 0
  const payments = createPayments(
    createHttp(server.url, (url, init) => {
      if (String(url).includes('/payments/order_') && polls++ > 0) passed = 26 * 60_000
      return fetch(url, init)
    }),
    { maxSats: 1000, service: server.url, now: () => Date.now() + passed },
  )
  const idempotencyKey = randomUUID()
  const byHand = { planId: 'spark', idempotencyKey, onInvoice: () => undefined } as const
  const phrase = 'invoice expired'
  await assert.rejects(payments.buy(planOrder('catch', 'spark'), byHand), { phrase })
  passed = 0
  polls = 0
  const wallet: Wallet = { pay: () => Promise.reject(new WalletError('no answer', 'unknown')) }
  const paying = { planId: 'spark', idempotencyKey, wallet } as const
  await assert.rejects(payments.buy(planOrder('catch', 'spark'), paying), {
    phrase: 'payment outcome unknown',
  })
})

test('a quote that is longer than any is refused, and is not kept', async (t) => {
  const server = await startServer(t)
  const wallet = testWallet(server)
  const mayfly = createMayfly({
    baseUrl: server.url,
    wallet,
    fetch: async (url, init) => {
      const answer = await fetch(url, init)
      if (answer.status !== 402) return answer
      const quote = { ...((await answer.json()) as object), more: 'x'.repeat(100_000) }
      return Response.json(quote, { status: 402 })
    },
  })
  await assert.rejects(mayfly.buyCatch({ planId: 'spark' }), { phrase: 'unexpected answer' })
  assert.deepEqual(wallet.asked, [])
})

/** The service, whose catalogue has this price in place of 100 sat, or none. */
const withPrice =
  (price: () => number | undefined): typeof fetch =>
  async (url, init) => {
    const answer = await fetch(url, init)
    if (!String(url).endsWith('/api/catalog')) return answer
    const told = price() === undefined ? '' : `"priceSats":${price()},`
    return new Response((await answer.text()).replaceAll('"priceSats":100,', told), answer)
  }
