/** A purchase as a record: what a program that was killed may do next, and what no service makes a wallet do. */
import assert from 'node:assert/strict'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { createHttp } from '../../src/client/http.ts'
import {
  createMayfly,
  MayflyError,
  type PurchaseRecord,
  type PurchaseStore,
  type Wallet,
  type WalletAnswer,
  WalletError,
} from '../../src/client/index.ts'
import { createPayments, planOrder } from '../../src/client/payments.ts'
import { books } from '../support/buying.ts'
import { anInvoice } from '../support/lies.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { testWallet } from '../support/wallet.ts'

const ONE_SALE = { orders: 1, invoices: 1, settled: 1, inboxes: 1 }
const MINUTE = 60_000

class Killed extends Error {}

/** A store that outlives the program, which dies at this write: just before it, or just after. */
function mortalStore(at = 0, when: 'before' | 'after' = 'before') {
  const rows = new Map<string, PurchaseRecord>()
  let writes = 0
  const store: PurchaseStore = {
    load: (key) => rows.get(key) ?? null,
    save(record) {
      writes++
      if (writes === at && when === 'before') throw new Killed()
      const before = rows.get(record.idempotencyKey)?.revision ?? 0
      if (record.revision !== before + 1) return false
      rows.set(record.idempotencyKey, structuredClone(record))
      if (writes === at) throw new Killed()
      return true
    },
  }
  return { ...store, rows, state: () => [...rows.values()].map(({ state }) => state) }
}

for (const when of ['before', 'after'] as const) {
  for (const write of [1, 2, 3, 4]) {
    test(`a program that is killed ${when} its write ${write} has paid once, and gets what it bought`, async (t) => {
      const server = await startServer(t)
      const wallet = keeping(testWallet(server), server)
      const store = mortalStore(write, when)
      const idempotencyKey = randomUUID()
      const purchase = { planId: 'spark', idempotencyKey } as const
      const client = () => createMayfly({ baseUrl: server.url, wallet, store })
      await assert.rejects(client().buyCatch(purchase))
      const inbox = await client().buyCatch(purchase)
      assert.equal((await server.mayfly.catch(inbox).status()).status, 'active')
      assert.deepEqual(await client().resume(idempotencyKey), inbox)
      assert.equal(new Set(wallet.asked).size, 1)
      assert.equal((await books(server)).settled, 1)
    })
  }
}

test('nothing is handed to a wallet that the store has not written before', async (t) => {
  const server = await startServer(t)
  const wallet = testWallet(server)
  for (const write of [1, 2]) {
    const store = mortalStore(write)
    const mayfly = createMayfly({ baseUrl: server.url, wallet, store })
    await assert.rejects(mayfly.buyCatch({ planId: 'spark' }), Killed)
  }
  assert.deepEqual(wallet.asked, [])
})

test('a preimage that cannot be written is not lost: the wallet tells it again', async (t) => {
  const server = await startServer(t)
  const wallet = keeping(testWallet(server), server)
  const store = mortalStore(3)
  const idempotencyKey = randomUUID()
  const client = () => createMayfly({ baseUrl: server.url, wallet, store })
  await assert.rejects(client().buyCatch({ planId: 'spark', idempotencyKey }), Killed)
  assert.deepEqual(store.state(), ['paying'])
  await client().resume(idempotencyKey)
  assert.equal(wallet.asked.length, 1)
  assert.deepEqual(await books(server), ONE_SALE)
})

test('two programs at once with one key hand one invoice to a wallet once', async (t) => {
  const server = await startServer(t)
  const wallet = testWallet(server)
  const store = mortalStore()
  const idempotencyKey = randomUUID()
  const bought = await Promise.all(
    [1, 2, 3].map(() =>
      createMayfly({ baseUrl: server.url, wallet, store }).buyCatch({
        planId: 'spark',
        idempotencyKey,
      }),
    ),
  )
  assert.equal(new Set(bought.map(({ publicId }) => publicId)).size, 1)
  assert.equal(wallet.asked.length, 1)
  assert.deepEqual(await books(server), ONE_SALE)
})

test('an interrupted purchase is polled by its order, and requested no second time', async (t) => {
  const server = await startServer(t)
  const wallet = keeping(testWallet(server), server)
  const idempotencyKey = randomUUID()
  for (const write of [2, 3]) {
    const store = mortalStore(write)
    const asked: string[] = []
    const client = () =>
      createMayfly({
        baseUrl: server.url,
        wallet,
        store,
        fetch: (url, init) => {
          asked.push(`${init?.method} ${new URL(String(url)).pathname}`)
          return fetch(url, init)
        },
      })
    const key = `${idempotencyKey}-${write}`
    await assert.rejects(client().buyCatch({ planId: 'spark', idempotencyKey: key }))
    asked.length = 0
    await client().buyCatch({ planId: 'spark', idempotencyKey: key })
    assert.match(asked[0] ?? '', /^GET \/api\/payments\/order_/)
    assert.equal(asked.filter((line) => line.startsWith('POST')).length, 0)
  }
})

test('a key that has another purchase in the store is refused, and asks nobody', async (t) => {
  const server = await startServer(t)
  const store = mortalStore()
  const idempotencyKey = randomUUID()
  const mayfly = createMayfly({ baseUrl: server.url, wallet: testWallet(server), store })
  await mayfly.buyCatch({ planId: 'spark', idempotencyKey })
  const phrase = 'idempotency key reused with a different request'
  await assert.rejects(mayfly.buyPulse({ planId: 'spark', idempotencyKey }), { phrase, status: 0 })
  const elsewhere = createMayfly({
    baseUrl: 'http://127.0.0.1:1',
    store,
    wallet: testWallet(server),
  })
  await assert.rejects(elsewhere.buyCatch({ planId: 'spark', idempotencyKey }), { phrase })
})

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
    const server = await startServer(t)
    const wallet = keeping(testWallet(server), server)
    wallet.next = 'unknown'
    const store = mortalStore()
    const idempotencyKey = randomUUID()
    let isHostile = false
    const client = () =>
      createMayfly({
        baseUrl: server.url,
        wallet,
        store,
        fetch: (url, init) =>
          isHostile && String(url).includes('/api/payments/')
            ? Promise.resolve(new Response(JSON.stringify({ error }), { status }))
            : fetch(url, init),
      })
    const stop = new AbortController()
    await assert.rejects(
      client().buyCatch({
        planId: 'spark',
        idempotencyKey,
        signal: stop.signal,
        onProgress: ({ stage }) => stage === 'uncertain' && stop.abort(),
      }),
      { phrase: 'payment outcome unknown' },
    )
    isHostile = true
    wallet.answer = { state: 'pending' }
    for (let i = 0; i < 3; i++) {
      await assert.rejects(client().resume(idempotencyKey, { signal: AbortSignal.timeout(1_000) }))
    }
    assert.deepEqual(store.state(), ['paying'])
    assert.equal(wallet.asked.length, 1)
    isHostile = false
    wallet.answer = null
    wallet.next = 'paid'
    await client().resume(idempotencyKey)
    assert.deepEqual(store.state(), ['delivered'])
    assert.equal(new Set(wallet.asked).size, 1)
    assert.deepEqual(await books(server), ONE_SALE)
  })
}

test('a service that offers another invoice for an order that reached a wallet gets no second payment', async (t) => {
  const server = await startServer(t)
  const wallet = keeping(testWallet(server), server)
  wallet.next = 'unknown'
  const store = mortalStore()
  const idempotencyKey = randomUUID()
  const stop = new AbortController()
  const client = (lie: boolean) =>
    createMayfly({
      baseUrl: server.url,
      wallet,
      store,
      fetch: async (url, init) => {
        const answer = await fetch(url, init)
        if (!lie || answer.status !== 402) return answer
        const other = await fetch(`${server.url}/api/payments/catch`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID() },
          body: '{"planId":"spark"}',
        })
        return new Response(await other.text(), { status: 402 })
      },
    })
  await assert.rejects(
    client(false).buyCatch({
      planId: 'spark',
      idempotencyKey,
      signal: stop.signal,
      onProgress: ({ stage }) => stage === 'uncertain' && stop.abort(),
    }),
  )
  for (const answer of [{ state: 'unknown' }, { state: 'failed' }, null] as const) {
    wallet.answer = answer
    const again = client(true).buyCatch({ planId: 'spark', idempotencyKey })
    await assert.rejects(again, { phrase: 'second payment refused' })
  }
  assert.equal(wallet.asked.length, 1)
})

test('a preimage is proof of its own invoice alone, and with one no wallet is asked', async (t) => {
  const server = await startServer(t)
  const wallet = testWallet(server)
  const quotes: string[] = []
  const stop = new AbortController()
  const bought = server.mayfly.buyCatch({
    planId: 'spark',
    signal: stop.signal,
    onInvoice({ bolt11 }) {
      quotes.push(bolt11)
      stop.abort()
    },
  })
  await assert.rejects(bought)
  const preimage = await server.pay(quotes[0] ?? '')
  const mayfly = createMayfly({ baseUrl: server.url, wallet })
  await assert.rejects(mayfly.buyCatch({ planId: 'spark', preimage }), {
    phrase: 'second payment refused',
  })
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

for (const [{ answer, keeps, minutes, seller = minutes }, outcome] of WHEN) {
  const kind = keeps ? 'keeps every attempt' : 'may forget'
  test(`a wallet that ${kind} and says ${answer} after ${minutes} min (${seller} at the service) is handed ${outcome === 'none' ? 'nothing' : `${outcome === 'same' ? 'the same' : 'another'} invoice`}`, async (t) => {
    const server = await startServer(t)
    const wallet = keeping(testWallet(server), server)
    wallet.keepsEveryAttempt = keeps
    wallet.next = 'unknown'
    const store = mortalStore()
    let passed = 0
    const payments = createPayments(
      createHttp(server.url, async (url, init) => {
        // A service that forgot the order quotes anew under the same key.
        const headers = new Headers(init?.headers)
        if (passed > 15 && init?.method === 'POST') headers.set('idempotency-key', randomUUID())
        const from = passed > 15 && init?.method !== 'POST' && String(url).includes('/payments/')
        const got = from
          ? new Response('{"error":"order expired"}', { status: 404 })
          : await fetch(url, { ...init, headers })
        const date = new Date(Date.now() + (passed === 0 ? 0 : seller) * MINUTE).toUTCString()
        return new Response(await got.text(), { status: got.status, headers: { date } })
      }),
      { maxSats: 1000, service: server.url, store, now: () => Date.now() + passed * MINUTE },
    )
    const idempotencyKey = randomUUID()
    const stop = new AbortController()
    const purchase = { planId: 'spark', wallet, idempotencyKey } as const
    await assert.rejects(
      payments.buy(planOrder('catch', 'spark'), {
        ...purchase,
        signal: stop.signal,
        onProgress: ({ stage }) => stage === 'uncertain' && stop.abort(),
      }),
    )
    const [first] = wallet.asked
    passed = minutes
    wallet.answer = { state: answer } as WalletAnswer
    wallet.next = 'paid'
    // Another invoice must be valid by our clock.
    if (outcome === 'another') server.clock.advance(minutes * MINUTE)
    const leave = new AbortController()
    await payments
      .buy(planOrder('catch', 'spark'), {
        ...purchase,
        signal: leave.signal,
        onProgress({ stage }) {
          if (stage === 'uncertain') leave.abort()
        },
      })
      .catch((error: unknown) => assert.ok(error instanceof MayflyError, String(error)))
    const more = wallet.asked.slice(1)
    if (outcome === 'none') assert.deepEqual(more, [])
    else if (outcome === 'same') assert.deepEqual(more, [first])
    else assert.ok(more.length === 1 && more[0] !== first)
    const [record] = [...store.rows.values()]
    assert.equal(record?.invoices.length, outcome === 'another' ? 2 : 1)
    assert.equal(record?.invoices[0]?.bolt11, first)
  })
}

test('an invoice of anybody stays unknown while its wallet does not say that it failed, whatever our clock says', async () => {
  const bolt11 = anInvoice({ paymentHash: 'ab'.repeat(32), amountMsat: 100_000 })
  const store = mortalStore()
  let passed = 0
  const now = () => Date.now() + passed
  const payments = createPayments(createHttp('http://mayfly.test', fetch), {
    maxSats: 1000,
    store,
    now,
  })
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
    const [record] = [...store.rows.values()]
    assert.equal(record?.invoices[0]?.reservedMsat, amountMsat)
  }
})

test('an invoice that expires while it is shown, or while the service is silent and our clock behind, is handed to nobody', async (t) => {
  const server = await startServer(t)
  const wallet = keeping(testWallet(server), server)
  const store = mortalStore()
  let passed = 0
  let isSilent = false
  const payments = createPayments(
    createHttp(server.url, (url, init) =>
      isSilent && String(url).includes('/api/payments/')
        ? Promise.reject(new TypeError('fetch failed'))
        : fetch(url, init),
    ),
    { maxSats: 1000, service: server.url, store, now: () => Date.now() + passed * MINUTE },
  )
  const buy = (idempotencyKey: string, more: object = {}) =>
    payments.buy(planOrder('catch', 'spark'), {
      planId: 'spark',
      wallet,
      idempotencyKey,
      ...more,
    })
  const slow = buy(randomUUID(), {
    onInvoice() {
      passed = 16
    },
  })
  await assert.rejects(slow, { phrase: 'invoice expired' })
  assert.deepEqual(wallet.asked, [])

  passed = 0
  wallet.next = 'not paid'
  const key = randomUUID()
  await assert.rejects(buy(key), { phrase: 'payment failed' })
  assert.equal(wallet.asked.length, 1)
  isSilent = true
  const stop = new AbortController()
  const again = buy(key, {
    signal: stop.signal,
    onProgress: ({ stage }: { stage: string }) => stage === 'uncertain' && stop.abort(),
  })
  await assert.rejects(again, { phrase: 'payment outcome unknown' })
  assert.equal(wallet.asked.length, 1)
})

test('a wallet may be paying by one call while it refuses the next, so its no is not the last word', async (t) => {
  const kinds: { keeps: boolean; answer: WalletAnswer | null }[] = [
    { keeps: false, answer: null },
    { keeps: true, answer: null },
    // Core Lightning says so of a payment that it is about to try again.
    { keeps: true, answer: { state: 'failed' } },
  ]
  for (const { keeps, answer } of kinds) {
    const server = await startServer(t)
    const wallet = keeping(testWallet(server), server)
    wallet.keepsEveryAttempt = keeps
    wallet.next = 'unknown'
    const store = mortalStore()
    let passedMs = 0
    const payments = createPayments(createHttp(server.url, fetch), {
      maxSats: 1000,
      service: server.url,
      store,
      now: () => Date.now() + passedMs,
    })
    const stop = new AbortController()
    const purchase = {
      planId: 'spark',
      wallet,
      idempotencyKey: randomUUID(),
    } as const
    const left = payments.buy(planOrder('catch', 'spark'), {
      ...purchase,
      signal: stop.signal,
      onProgress: ({ stage }) => stage === 'uncertain' && stop.abort(),
    })
    await assert.rejects(left)
    passedMs = 3 * MINUTE
    wallet.next = 'not paid'
    wallet.answer = answer
    await assert.rejects(
      payments.buy(planOrder('catch', 'spark'), purchase),
      (error) =>
        error instanceof MayflyError &&
        error.phrase === 'payment outcome unknown' &&
        error.cause instanceof WalletError &&
        error.cause.outcome === 'unknown',
    )
    assert.equal(wallet.asked.length, 2)
    assert.deepEqual(store.state(), ['paying'])
  }
})

test('what a wallet has paid is kept, though another program has written since', async (t) => {
  const server = await startServer(t)
  const wallet = keeping(testWallet(server), server)
  const store = mortalStore()
  const begun = Promise.withResolvers<void>()
  const over = Promise.withResolvers<void>()
  const slow: Wallet = {
    ...wallet,
    async pay(bolt11) {
      begun.resolve()
      await over.promise
      return wallet.pay(bolt11)
    },
  }
  let passedMs = 0
  const now = () => Date.now() + passedMs
  const terms = { planId: 'spark', idempotencyKey: randomUUID() } as const
  const buy = (from: Wallet) =>
    createPayments(createHttp(server.url, fetch), {
      maxSats: 1000,
      service: server.url,
      store,
      now,
    }).buy(planOrder('catch', 'spark'), { ...terms, wallet: from })
  const first = buy(slow)
  await begun.promise
  // The clock is set, so the call looks like an old one, and the wallet fails what it tries again.
  passedMs = 13 * MINUTE
  wallet.answer = { state: 'failed' }
  wallet.next = 'not paid'
  await assert.rejects(buy(wallet), { phrase: 'payment outcome unknown' })
  wallet.next = 'paid'
  over.resolve()
  const inbox = await first
  const [record] = [...store.rows.values()]
  assert.deepEqual([record?.state, record?.resource], ['delivered', inbox])
  assert.match(record?.preimage ?? '', /^[0-9a-f]{64}$/)
})

test('a purchase that reached one wallet is handed to no other', async (t) => {
  const server = await startServer(t)
  const [one, other] = [testWallet(server), testWallet(server)]
  const [mine, yours] = [named(one, 'lnd 02aa'), named(other, 'lnd 03bb')]
  one.next = 'not paid'
  const store = mortalStore()
  const idempotencyKey = randomUUID()
  const buy = (wallet: Wallet) =>
    createMayfly({ baseUrl: server.url, store }).buyCatch({
      planId: 'spark',
      wallet,
      idempotencyKey,
    })
  await assert.rejects(buy(mine), { phrase: 'payment failed' })
  await assert.rejects(
    buy(yours),
    (error) => error instanceof MayflyError && /lnd 02aa/.test(String(error.cause)),
  )
  assert.deepEqual(other.asked, [])
  one.next = 'paid'
  await buy(mine)
  assert.deepEqual(await books(server), ONE_SALE)
})

test('a wallet that paid another invoice with the same hash has not paid this one', async (t) => {
  const server = await startServer(t)
  const wallet = testWallet(server)
  const paid = await server.mayfly.catalog()
  assert.ok(paid)
  const lookup = async (): Promise<WalletAnswer> => ({
    state: 'paid',
    preimage: '11'.repeat(32),
    bolt11: 'lnbcrt1other',
  })
  const mayfly = createMayfly({ baseUrl: server.url, wallet: { ...wallet, lookup } })
  await assert.rejects(mayfly.buyCatch({ planId: 'spark' }), { phrase: 'invoice disagrees' })
  assert.deepEqual(wallet.asked, [])
})

test('a store that refuses the payment, as a budget does, keeps the wallet from being asked', async (t) => {
  const server = await startServer(t)
  const wallet = testWallet(server)
  const rows = mortalStore()
  const store: PurchaseStore = {
    load: rows.load,
    save(record) {
      if (record.state === 'paying') throw new WalletError('the day is spent', 'not paid')
      return rows.save(record)
    },
  }
  const idempotencyKey = randomUUID()
  const mayfly = createMayfly({ baseUrl: server.url, wallet, store })
  await assert.rejects(mayfly.buyCatch({ planId: 'spark', idempotencyKey }), {
    phrase: 'payment failed',
  })
  assert.deepEqual(wallet.asked, [])
  assert.deepEqual(rows.state(), ['quoted'])
})

/** A purchase whose first invoice counted as failed, and that was killed when it had another one. */
async function aSecondInvoice(t: TestContext) {
  const server = await startServer(t)
  const wallet = Object.assign(keeping(testWallet(server), server), { id: async () => 'lnd 02aa' })
  wallet.next = 'unknown'
  // Its writes are: quoted, paying, failed, quoted, paying.
  const store = mortalStore(5)
  const idempotencyKey = randomUUID()
  let passed = 0
  let isForgotten = false
  // The service forgets the first order for a while, and quotes anew under the same key.
  const second = { key: randomUUID(), orderId: '-' }
  const payments = createPayments(
    createHttp(server.url, async (url, init) => {
      const headers = new Headers(init?.headers)
      const isAnew = isForgotten && init?.method === 'POST'
      const isOfSecond = String(url).includes(second.orderId)
      if (isAnew || isOfSecond) headers.set('idempotency-key', second.key)
      const isLost = isForgotten && !isOfSecond && String(url).includes('/payments/order_')
      const got = isLost
        ? new Response('{"error":"order not found"}', { status: 404 })
        : await fetch(url, { ...init, headers })
      const text = await got.text()
      if (isAnew) second.orderId = (JSON.parse(text) as { orderId: string }).orderId
      const date = new Date(Date.now() + passed * MINUTE).toUTCString()
      return new Response(text, { status: got.status, headers: { date } })
    }),
    { maxSats: 1000, service: server.url, store, now: () => Date.now() + passed * MINUTE },
  )
  const buy = (by: Wallet, more: object = {}) =>
    payments.buy(planOrder('catch', 'spark'), {
      planId: 'spark',
      wallet: by,
      idempotencyKey,
      ...more,
    })
  const stop = new AbortController()
  const left = buy(wallet, {
    signal: stop.signal,
    onProgress: ({ stage }: { stage: string }) => stage === 'uncertain' && stop.abort(),
  })
  await assert.rejects(left)
  const [first = ''] = wallet.asked
  const preimage = await server.pay(first)
  passed = 26
  isForgotten = true
  server.clock.advance(26 * MINUTE)
  await assert.rejects(buy(wallet), Killed)
  assert.deepEqual(store.state(), ['quoted'])
  isForgotten = false
  return { wallet, store, buy, first, preimage }
}

test('a wallet is asked about every invoice of a purchase, and one that was paid after all is collected', async (t) => {
  const { wallet, store, buy, first, preimage } = await aSecondInvoice(t)
  wallet.lookup = async (bolt11) =>
    bolt11 === first ? { state: 'paid', preimage } : { state: 'unknown' }
  wallet.next = 'paid'
  await buy(wallet)
  assert.deepEqual(wallet.asked, [first])
  const [record] = [...store.rows.values()]
  assert.deepEqual([record?.state, record?.invoices.at(-1)?.bolt11], ['delivered', first])
})

test('no later invoice of a purchase is handed over while its wallet is busy with an earlier one', async (t) => {
  const { wallet, buy, first } = await aSecondInvoice(t)
  wallet.lookup = async (bolt11) => ({ state: bolt11 === first ? 'pending' : 'unknown' })
  const again = buy(wallet, { signal: AbortSignal.timeout(1_000) })
  await assert.rejects(again, { phrase: 'payment outcome unknown' })
  assert.deepEqual(wallet.asked, [first])
})

test('a later invoice of a purchase is handed to its wallet alone, too', async (t) => {
  const { wallet, buy, first } = await aSecondInvoice(t)
  const other = named({ ...wallet }, 'cln 03bb')
  await assert.rejects(
    buy(other),
    (error) => error instanceof MayflyError && /lnd 02aa/.test(String(error.cause)),
  )
  assert.deepEqual(wallet.asked, [first])
})

test('a wallet that did not pay has spent nothing, however often it is asked', async (t) => {
  const server = await startServer(t)
  const wallet = testWallet(server)
  wallet.next = 'not paid'
  const store = mortalStore()
  const mayfly = createMayfly({ baseUrl: server.url, wallet, store })
  const idempotencyKey = randomUUID()
  for (let attempt = 0; attempt < 3; attempt++) {
    const again = mayfly.buyCatch({ planId: 'spark', idempotencyKey })
    await assert.rejects(again, { phrase: 'payment failed' })
    const [record] = [...store.rows.values()]
    assert.equal(record?.invoices[0]?.reservedMsat, 100_000)
  }
})

type Keeping = ReturnType<typeof testWallet> & { answer: WalletAnswer | null }

/** A wallet that keeps every attempt, and whose look-ups a test can replace. */
function keeping(wallet: ReturnType<typeof testWallet>, server: TestServer): Keeping {
  const paid = new Map<string, string>()
  const { pay } = wallet
  const keeper: Keeping = Object.assign(wallet, {
    answer: null,
    keepsEveryAttempt: true,
    async pay(bolt11: string, options?: { signal?: AbortSignal }) {
      const done = await pay.call(keeper, bolt11, options)
      paid.set(bolt11, done.preimage)
      return done
    },
    async lookup(bolt11: string): Promise<WalletAnswer> {
      if (keeper.answer) return keeper.answer
      const preimage = paid.get(bolt11)
      return preimage === undefined ? { state: 'unknown' } : { state: 'paid', preimage }
    },
  })
  void server
  return keeper
}

const named = (wallet: Wallet, id: string): Wallet => ({ ...wallet, id: async () => id })
