/** A key that others could guess: the SDK gets what was paid all the same, because it proves the payment. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMayfly, type PurchaseProgress } from '../../src/client/index.ts'
import { memoryStore } from '../../src/client/record.ts'
import { books } from '../support/buying.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { query } from '../support/store.ts'
import { testWallet } from '../support/wallet.ts'

const KEY = 'order-0001'
const ONE_SALE = { orders: 1, invoices: 1, settled: 1, inboxes: 1 }
const BEHIND_PROXY = { MAYFLY_TRUSTED_PROXIES: '127.0.0.1' }

/** The SDK at an address of its own. */
const mayflyAt = (server: TestServer, address: string) =>
  createMayfly({
    baseUrl: server.url,
    wallet: testWallet(server),
    fetch: (url, init) =>
      fetch(url, {
        ...init,
        headers: { ...(init?.headers as Record<string, string>), 'x-forwarded-for': address },
      }),
  })

test('an interrupted purchase is collected from another address with the proof', async (t) => {
  const server = await startServer(t, BEHIND_PROXY)
  const leaving = new AbortController()
  const told: PurchaseProgress[] = []
  const purchase = { planId: 'spark', idempotencyKey: KEY } as const
  const interrupted = mayflyAt(server, '203.0.113.1').buyCatch({
    ...purchase,
    signal: leaving.signal,
    onProgress(progress) {
      told.push(progress)
      if (progress.stage === 'paid') leaving.abort()
    },
  })
  await assert.rejects(interrupted, { phrase: 'paid but not collected' })
  const moved = mayflyAt(server, '2001:db8::7')
  const preimage = told.at(-1)?.preimage ?? ''
  assert.match(preimage, /^[0-9a-f]{64}$/)
  // What was contested before the payment was seen is handed over to nothing less.
  await query(server, 'update purchase_order set contested = 1')
  await assert.rejects(moved.buyCatch(purchase), { phrase: 'proof of payment required' })
  const inbox = await moved.buyCatch({ ...purchase, preimage })
  assert.equal((await server.mayfly.catch(inbox).status()).status, 'active')
  assert.deepEqual(await books(server), ONE_SALE)
})

test('a purchase of the store is collected by the proof of a payment that was made elsewhere, which it keeps', async (t) => {
  const server = await startServer(t)
  const store = memoryStore()
  const mayfly = createMayfly({ baseUrl: server.url, store })
  const leaving = new AbortController()
  let bolt11 = ''
  const begun = mayfly.buyCatch({
    planId: 'spark',
    idempotencyKey: KEY,
    signal: leaving.signal,
    onInvoice(quote) {
      bolt11 = quote.bolt11
      leaving.abort()
    },
  })
  await assert.rejects(begun, { name: 'AbortError' })
  await query(server, 'update purchase_order set contested = 1')
  const preimage = await server.pay(bolt11)
  await assert.rejects(mayfly.resume(KEY), { phrase: 'proof of payment required' })
  await assert.rejects(mayfly.resume(KEY, { preimage: '00'.repeat(32) }), {
    phrase: 'second payment refused',
  })
  const inbox = await mayfly.resume(KEY, { preimage })
  assert.equal('product' in inbox && inbox.product, 'catch')
  assert.equal((await store.load(KEY))?.preimage, preimage)
})
