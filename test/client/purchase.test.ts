import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { createMayfly, type Purchase, type PurchaseProgress } from '../../src/client/index.ts'
import { books } from '../support/buying.ts'
import { startServer } from '../support/server.ts'
import { testWallet } from '../support/wallet.ts'

test('a wallet buys by itself, and one of a single purchase pays that, and shows its invoice where that is asked', async (t) => {
  const server = await startServer(t)
  const wallet = testWallet(server)
  const mayfly = createMayfly({ baseUrl: server.url, wallet, maxSats: 100 })
  const told: PurchaseProgress[] = []
  const inbox = await mayfly.buyCatch({
    planId: 'spark',
    onProgress: (progress) => told.push(progress),
  })
  assert.equal((await mayfly.catch(inbox).status()).status, 'active')
  assert.equal(wallet.asked.length, 1)
  assert.deepEqual(await books(server), { orders: 1, invoices: 1, settled: 1, inboxes: 1 })
  assert.deepEqual(
    told.map(({ stage }) => stage),
    ['invoice', 'paying', 'paid'],
  )
  assert.equal(told[0]?.quote.bolt11, wallet.asked[0])

  const shown: string[] = []
  const onInvoice = ({ bolt11 }: { bolt11: string }) => shown.push(bolt11)
  const monitor = await server.mayfly.buyPulse({ planId: 'spark', wallet, onInvoice })
  assert.equal(monitor.product, 'pulse')
  assert.deepEqual(shown, wallet.asked.slice(1))
})

test('every purchase carries a fresh UUIDv4, or the key that it is given', async (t) => {
  const server = await startServer(t)
  const keys: string[] = []
  const mayfly = createMayfly({
    baseUrl: server.url,
    wallet: testWallet(server),
    fetch: (url, init) => {
      const key = new Headers(init?.headers).get('idempotency-key')
      if (key !== null) keys.push(key)
      return fetch(url, init)
    },
  })
  await mayfly.buyCatch({ planId: 'spark' })
  await mayfly.buyCatch({ planId: 'spark' })
  const given = randomUUID()
  await mayfly.buyCatch({ planId: 'spark', idempotencyKey: given })
  const [first, , second, , third] = keys
  assert.match(
    String(first),
    /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  )
  assert.deepEqual(keys, [first, first, second, second, given, given])
  assert.equal(third, given)
  assert.notEqual(first, second)
})

test('a proof of the wallet goes along with the key, and nowhere else', async (t) => {
  const server = await startServer(t)
  const asked: { url: string; proof: string | null }[] = []
  const told: PurchaseProgress[] = []
  const watched: typeof fetch = (url, init) => {
    asked.push({ url: String(url), proof: new Headers(init?.headers).get('payment-preimage') })
    return fetch(url, init)
  }
  const mayfly = createMayfly({ baseUrl: server.url, wallet: testWallet(server), fetch: watched })
  const idempotencyKey = randomUUID()
  const purchase = { planId: 'spark', idempotencyKey } as const
  const bought = await mayfly.buyCatch({ ...purchase, onProgress: (step) => told.push(step) })
  const proofs = told.map(({ preimage }) => preimage)
  const proof = proofs[2] ?? ''
  assert.deepEqual(proofs, [undefined, undefined, proof])
  assert.match(proof, /^[0-9a-f]{64}$/)
  // The poll proves, and the purchase before it had nothing to prove.
  assert.deepEqual(
    asked.filter(({ url }) => !url.endsWith('/catalog')).map((request) => request.proof),
    [null, proof],
  )
  const elsewhere = createMayfly({ baseUrl: server.url, fetch: watched })
  const again = await elsewhere.buyCatch({ ...purchase, preimage: proof, onInvoice() {} })
  assert.deepEqual(again, bought)
  assert.equal(asked.at(-1)?.proof, proof)
  assert.equal(
    asked.some(({ url }) => url.includes(proof)),
    false,
  )
})

test('a purchase without a wallet has to show the invoice to somebody, which the types say', () => {
  const by = (purchase: Purchase): Purchase => purchase
  // @ts-expect-error: neither a wallet nor onInvoice.
  by({ planId: 'spark' })
  by({ planId: 'spark', onInvoice() {} })
})
