/** What neither services nor wallets nor clocks make a buyer do: pay a second time. */
import assert from 'node:assert/strict'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { createHttp } from '../../src/client/http.ts'
import { MayflyError, type Wallet, type WalletAnswer, WalletError } from '../../src/client/index.ts'
import { createPayments } from '../../src/client/payments.ts'
import { books } from '../support/buying.ts'
import { anInvoice } from '../support/invoice.ts'
import { aBuyer, Killed, leavingAt, MINUTE, mortalStore, named } from './buyer.ts'

const ONE_SALE = { orders: 1, invoices: 1, settled: 1, inboxes: 1 }

/** A quote of another order. */
const anotherQuote = (url: string) =>
  fetch(`${url}/api/payments/catch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID() },
    body: '{"planId":"spark"}',
  })

/** For `assert.rejects`: the error names the wallet that was asked before. */
const isOf = (wallet: string) => (error: unknown) =>
  error instanceof MayflyError && String(error.cause).includes(wallet)

/** What a service may say of an order that reached a wallet. */
const REFUSALS: [number, string][] = [
  [404, 'order not found'],
  [404, 'order expired'],
  [404, 'not found'],
  [410, 'already delivered'],
  [500, 'internal error'],
]

for (const [status, error] of REFUSALS) {
  test(`a service that answers ${status} ${error} loses no purchase that reached a wallet, and gets no second payment`, async (t) => {
    const buyer = await aBuyer(t)
    const { server, wallet, store, mayfly, idempotencyKey } = buyer
    await buyer.begin()
    buyer.fetch = (url, init) =>
      String(url).includes('/api/payments/')
        ? Promise.resolve(Response.json({ error }, { status }))
        : fetch(url, init)
    wallet.answer = { state: 'pending' }
    for (let i = 0; i < 3; i++) {
      const signal = AbortSignal.timeout(1_000)
      await assert.rejects(mayfly().resume(idempotencyKey, { signal }))
    }
    assert.deepEqual(store.state(), ['paying'])
    assert.equal(wallet.asked.length, 1)
    buyer.fetch = fetch
    wallet.answer = null
    wallet.next = 'paid'
    await mayfly().resume(idempotencyKey)
    assert.deepEqual(store.state(), ['delivered'])
    assert.equal(new Set(wallet.asked).size, 1)
    assert.deepEqual(await books(server), ONE_SALE)
  })
}

test('what a wallet says later that it paid is kept and collected, whatever the service says meanwhile', async (t) => {
  const buyer = await aBuyer(t)
  const { server, wallet, store } = buyer
  await buyer.begin()
  wallet.answer = { state: 'paid', preimage: await server.pay(wallet.asked[0] ?? '') }
  buyer.fetch = async () => Response.json({ error: 'order expired' }, { status: 404 })
  await assert.rejects(buyer.buy(), { phrase: 'order expired' })
  assert.deepEqual(store.state(), ['paid'])
  buyer.fetch = fetch
  await buyer.buy({ wallet: undefined })
  assert.deepEqual(store.state(), ['delivered'])
  assert.equal(wallet.asked.length, 1)
})

test('a service that offers another invoice for an order that reached a wallet gets no second payment', async (t) => {
  const buyer = await aBuyer(t)
  await buyer.begin()
  buyer.fetch = async (url, init) => {
    const answer = await fetch(url, init)
    return answer.status === 402 ? anotherQuote(buyer.server.url) : answer
  }
  for (const answer of [{ state: 'unknown' }, { state: 'failed' }, null] as const) {
    buyer.wallet.answer = answer
    await assert.rejects(buyer.buy(), { phrase: 'second payment refused' })
  }
  assert.equal(buyer.wallet.asked.length, 1)
})

test('a service that offers another invoice for an order that is paid gets no second payment', async (t) => {
  const buyer = await aBuyer(t)
  buyer.fetch = (url, init) =>
    String(url).includes('/api/payments/order_') ? anotherQuote(buyer.server.url) : fetch(url, init)
  await assert.rejects(buyer.buy(), { phrase: 'second payment refused', status: 402 })
  assert.equal(buyer.wallet.asked.length, 1)
})

test('a preimage is proof of its own invoice alone, and with one no wallet is asked', async (t) => {
  const { server, wallet, buy } = await aBuyer(t)
  const other = (await (await anotherQuote(server.url)).json()) as { bolt11: string }
  const preimage = await server.pay(other.bolt11)
  await assert.rejects(buy({ preimage }), { phrase: 'second payment refused' })
  assert.deepEqual(wallet.asked, [])
})

type Case = { answer: WalletAnswer['state']; keeps: boolean; minutes: number; seller?: number }

/** What happens to a purchase that reached a wallet, by what that says and when. */
const WHEN: [Case, 'same' | 'another' | 'none'][] = [
  [{ answer: 'failed', keeps: false, minutes: 1 }, 'same'],
  [{ answer: 'unknown', keeps: true, minutes: 1 }, 'same'],
  // Its call may still be under way.
  [{ answer: 'unknown', keeps: false, minutes: 1 }, 'none'],
  [{ answer: 'unknown', keeps: false, minutes: 3 }, 'same'],
  [{ answer: 'pending', keeps: true, minutes: 3 }, 'none'],
  [{ answer: 'failed', keeps: true, minutes: 16 }, 'none'],
  [{ answer: 'failed', keeps: true, minutes: 24 }, 'none'],
  [{ answer: 'failed', keeps: true, minutes: 26 }, 'another'],
  [{ answer: 'failed', keeps: false, minutes: 26 }, 'another'],
  [{ answer: 'unknown', keeps: true, minutes: 26 }, 'another'],
  [{ answer: 'unknown', keeps: false, minutes: 26 }, 'none'],
  [{ answer: 'unknown', keeps: false, minutes: 60 * 24 * 30 }, 'none'],
  [{ answer: 'pending', keeps: true, minutes: 60 }, 'none'],
  // Whichever clock is behind.
  [{ answer: 'failed', keeps: true, minutes: 26, seller: 16 }, 'none'],
  [{ answer: 'failed', keeps: true, minutes: 16, seller: 26 }, 'none'],
  [{ answer: 'failed', keeps: true, minutes: 1, seller: 16 }, 'none'],
]
const HANDED = { same: 'the same invoice', another: 'another invoice', none: 'nothing' }

for (const [{ answer, keeps, minutes, seller = minutes }, outcome] of WHEN) {
  const kind = keeps ? 'keeps every attempt' : 'may forget'
  test(`a wallet that ${kind} and says ${answer} after ${minutes} min (${seller} at the service) is handed ${HANDED[outcome]}`, async (t) => {
    const buyer = await aBuyer(t)
    const { server, wallet, store } = buyer
    wallet.keepsEveryAttempt = keeps
    await buyer.begin()
    const [first] = wallet.asked
    // A service that forgot the order quotes anew under the same key.
    const hasForgotten = minutes > 15
    buyer.fetch = async (url, init) => {
      const headers = new Headers(init?.headers)
      if (hasForgotten && init?.method === 'POST') headers.set('idempotency-key', randomUUID())
      const isPoll = init?.method !== 'POST' && String(url).includes('/payments/')
      const got =
        hasForgotten && isPoll
          ? Response.json({ error: 'order expired' }, { status: 404 })
          : await fetch(url, { ...init, headers })
      const date = new Date(Date.now() + seller * MINUTE).toUTCString()
      return new Response(await got.text(), { status: got.status, headers: { date } })
    }
    buyer.minutesPassed = minutes
    wallet.answer = { state: answer } as WalletAnswer
    wallet.next = 'paid'
    // Another invoice must be valid by our clock.
    if (outcome === 'another') server.clock.advance(minutes * MINUTE)
    await buyer.buy(leavingAt('uncertain')).catch((error: unknown) => {
      assert.ok(error instanceof MayflyError, String(error))
    })
    const more = wallet.asked.slice(1)
    if (outcome === 'none') assert.deepEqual(more, [])
    else if (outcome === 'same') assert.deepEqual(more, [first])
    else assert.ok(more.length === 1 && more[0] !== first)
    const [record] = store.records()
    assert.equal(record?.invoices.length, outcome === 'another' ? 2 : 1)
    assert.equal(record?.invoices[0]?.bolt11, first)
  })
}

test('an invoice of anybody stays unknown while its wallet does not say that it failed, whatever our clock says', async () => {
  const bolt11 = anInvoice({ paymentHash: 'ab'.repeat(32), amountMsat: 100_000 })
  const store = mortalStore()
  let passed = 0
  const http = createHttp('http://mayfly.test', fetch)
  const payments = createPayments(http, { maxSats: 1000, store, now: () => Date.now() + passed })
  let answer: WalletAnswer = { state: 'unknown' }
  const wallet: Wallet = {
    pay: () => Promise.reject(new WalletError('its answer was lost', 'unknown')),
    lookup: async () => answer,
    keepsEveryAttempt: true,
    id: async () => 'a node',
  }
  const pay = () => payments.payInvoice(bolt11, { wallet, maxSats: 1000 })
  await assert.rejects(pay, { phrase: 'payment outcome unknown' })
  passed = 365 * 24 * 60 * MINUTE
  await assert.rejects(pay, { phrase: 'payment outcome unknown' })
  assert.deepEqual(store.state(), ['paying'])
  answer = { state: 'failed' }
  await assert.rejects(pay, { phrase: 'invoice expired' })
  assert.deepEqual(store.state(), ['failed'])
})

test('an invoice of anybody over a part of a satoshi is paid, and reserves whole millisatoshis', async () => {
  for (const amountMsat of [1_001, 1_005, 8_201]) {
    const preimage = randomBytes(32)
    const paymentHash = createHash('sha256').update(preimage).digest('hex')
    const store = mortalStore()
    const payments = createPayments(createHttp('http://mayfly.test', fetch), { maxSats: 9, store })
    const wallet: Wallet = { pay: async () => ({ preimage: preimage.toString('hex') }) }
    await payments.payInvoice(anInvoice({ paymentHash, amountMsat }), { wallet, maxSats: 9 })
    assert.equal(store.records()[0]?.invoices[0]?.reservedMsat, amountMsat)
  }
})

test('an invoice that expires while it is shown is handed to nobody', async (t) => {
  const buyer = await aBuyer(t)
  const onInvoice = () => {
    buyer.minutesPassed = 16
  }
  await assert.rejects(buyer.buy({ onInvoice }), { phrase: 'invoice expired' })
  assert.deepEqual(buyer.wallet.asked, [])
})

test('an invoice is not handed over again while the service is silent, since our clock may be behind', async (t) => {
  const buyer = await aBuyer(t)
  buyer.wallet.next = 'not paid'
  await assert.rejects(buyer.buy(), { phrase: 'payment failed' })
  buyer.fetch = (url, init) =>
    String(url).includes('/api/payments/')
      ? Promise.reject(new TypeError('fetch failed'))
      : fetch(url, init)
  const again = buyer.buy(leavingAt('uncertain'))
  await assert.rejects(again, { phrase: 'payment outcome unknown' })
  assert.equal(buyer.wallet.asked.length, 1)
})

test('a wallet may be paying by one call while it refuses the next, so its no is not the last word', async (t) => {
  const kinds: { keeps: boolean; answer: WalletAnswer | null }[] = [
    { keeps: false, answer: null },
    { keeps: true, answer: null },
    // Core Lightning says so of a payment that it is about to try again.
    { keeps: true, answer: { state: 'failed' } },
  ]
  for (const { keeps, answer } of kinds) {
    const buyer = await aBuyer(t)
    const { wallet, store } = buyer
    wallet.keepsEveryAttempt = keeps
    await buyer.begin()
    buyer.minutesPassed = 3
    wallet.next = 'not paid'
    wallet.answer = answer
    await assert.rejects(
      buyer.buy(),
      (error) =>
        error instanceof MayflyError &&
        error.phrase === 'payment outcome unknown' &&
        error.cause instanceof WalletError &&
        error.cause.outcome === 'unknown',
    )
    assert.equal(wallet.asked.length, 2)
    assert.deepEqual(store.state(), ['paying'])
    // One that forgets its attempts may pay each of them.
    assert.equal(store.records()[0]?.invoices[0]?.reservedMsat, keeps ? 100_000 : 200_000)
  }
})

test('a purchase that reached one wallet is handed to no other', async (t) => {
  const { server, wallet, buy } = await aBuyer(t)
  const mine = named(wallet, 'lnd 02aa')
  wallet.next = 'not paid'
  await assert.rejects(buy({ wallet: mine }), { phrase: 'payment failed' })
  await assert.rejects(buy({ wallet: named(wallet, 'lnd 03bb') }), isOf('lnd 02aa'))
  assert.equal(wallet.asked.length, 1)
  wallet.next = 'paid'
  await buy({ wallet: mine })
  assert.deepEqual(await books(server), ONE_SALE)
})

test('a wallet that paid another invoice with the same hash, or says so without proof, has not paid this one', async (t) => {
  const { wallet, buy } = await aBuyer(t)
  for (const [other, phrase] of [
    [{ bolt11: 'lnbcrt1other' }, 'invoice disagrees'],
    [{}, 'payment failed'],
  ] as const) {
    wallet.answer = { state: 'paid', preimage: '11'.repeat(32), ...other }
    await assert.rejects(buy(leavingAt('paid')), { phrase })
  }
  assert.deepEqual(wallet.asked, [])
})

/** A purchase whose first invoice counted as failed, and that was killed when it had another one. */
async function aSecondInvoice(t: TestContext) {
  // Its writes are: quoted, paying, failed, quoted, paying.
  const buyer = await aBuyer(t, { store: mortalStore(5) })
  const { server, wallet, store } = buyer
  Object.assign(wallet, { id: async () => 'lnd 02aa' })
  await buyer.begin()
  const [first = ''] = wallet.asked
  const preimage = await server.pay(first)
  let isForgotten = true
  // The service forgets the first order for a while, and quotes anew under the same key.
  const second = { key: randomUUID(), orderId: '-' }
  buyer.fetch = async (url, init) => {
    const headers = new Headers(init?.headers)
    const isAnew = isForgotten && init?.method === 'POST'
    const isOfSecond = String(url).includes(second.orderId)
    if (isAnew || isOfSecond) headers.set('idempotency-key', second.key)
    const isLost = isForgotten && !isOfSecond && String(url).includes('/payments/order_')
    const got = isLost
      ? Response.json({ error: 'order not found' }, { status: 404 })
      : await fetch(url, { ...init, headers })
    const text = await got.text()
    if (isAnew) second.orderId = (JSON.parse(text) as { orderId: string }).orderId
    const date = new Date(Date.now() + 26 * MINUTE).toUTCString()
    return new Response(text, { status: got.status, headers: { date } })
  }
  buyer.minutesPassed = 26
  server.clock.advance(26 * MINUTE)
  await assert.rejects(buyer.buy(), Killed)
  assert.deepEqual(store.state(), ['quoted'])
  isForgotten = false
  return { ...buyer, first, preimage }
}

test('a wallet is asked about every invoice of a purchase, and one that was paid after all is collected', async (t) => {
  const { wallet, store, buy, first, preimage } = await aSecondInvoice(t)
  wallet.lookup = async (bolt11) =>
    bolt11 === first ? { state: 'paid', preimage } : { state: 'unknown' }
  wallet.next = 'paid'
  await buy()
  assert.deepEqual(wallet.asked, [first])
  const [record] = store.records()
  const [later, paid, ...more] = record?.invoices ?? []
  assert.deepEqual([record?.state, paid?.bolt11, more], ['delivered', first, []])
  assert.notEqual(later?.bolt11, first, 'the other invoice is kept, too')
})

test('no later invoice of a purchase is handed over while its wallet is busy with any of them', async (t) => {
  for (const isFirst of [true, false]) {
    const { wallet, buy, first } = await aSecondInvoice(t)
    wallet.lookup = async (bolt11) => ({
      state: (bolt11 === first) === isFirst ? 'pending' : 'unknown',
    })
    const again = buy(leavingAt('uncertain'))
    await assert.rejects(again, { phrase: 'payment outcome unknown' })
    assert.deepEqual(wallet.asked, [first])
  }
})

test('a later invoice of a purchase is handed to its wallet alone, too', async (t) => {
  const { wallet, buy, first } = await aSecondInvoice(t)
  await assert.rejects(buy({ wallet: named(wallet, 'cln 03bb') }), isOf('lnd 02aa'))
  assert.deepEqual(wallet.asked, [first])
})
