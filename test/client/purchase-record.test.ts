/** A purchase as a record: what a program may do next that was killed, or that is not the only one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createMayfly,
  MayflyError,
  type PurchaseStore,
  WalletError,
} from '../../src/client/index.ts'
import { books } from '../support/buying.ts'
import { startServer } from '../support/server.ts'
import { testWallet } from '../support/wallet.ts'
import { aBuyer, Killed, mortalStore } from './buyer.ts'

const ONE_SALE = { orders: 1, invoices: 1, settled: 1, inboxes: 1 }

for (const when of ['before', 'after'] as const) {
  for (const write of [1, 2, 3, 4]) {
    test(`a program that is killed ${when} its write ${write} has paid once, and gets what it bought`, async (t) => {
      const { server, wallet, mayfly, purchase } = await aBuyer(t, {
        store: mortalStore(write, when),
      })
      await assert.rejects(mayfly().buyCatch(purchase), write < 4 ? Killed : MayflyError)
      // Nothing is handed to a wallet before the store has written its second record.
      assert.equal(wallet.asked.length, write > 2 ? 1 : 0)
      const inbox = await mayfly().buyCatch(purchase)
      assert.equal((await server.mayfly.catch(inbox).status()).status, 'active')
      assert.deepEqual(await mayfly().resume(purchase.idempotencyKey), inbox)
      assert.equal(wallet.asked.length, 1)
      assert.deepEqual(await books(server), ONE_SALE)
    })
  }
}

test('programs at once with one key hand one invoice to a wallet once', async (t) => {
  const { server, wallet, mayfly, purchase } = await aBuyer(t)
  const bought = await Promise.all([1, 2, 3].map(() => mayfly().buyCatch(purchase)))
  assert.equal(new Set(bought.map(({ publicId }) => publicId)).size, 1)
  assert.equal(wallet.asked.length, 1)
  assert.deepEqual(await books(server), ONE_SALE)
})

test('an interrupted purchase is polled by its order, and requested no second time', async (t) => {
  for (const write of [2, 3]) {
    const buyer = await aBuyer(t, { store: mortalStore(write) })
    await assert.rejects(buyer.mayfly().buyCatch(buyer.purchase))
    const asked: string[] = []
    buyer.fetch = (url, init) => {
      asked.push(`${init?.method} ${new URL(String(url)).pathname}`)
      return fetch(url, init)
    }
    await buyer.mayfly().buyCatch(buyer.purchase)
    assert.match(asked[0] ?? '', /^GET \/api\/payments\/order_/)
    assert.equal(asked.filter((line) => line.startsWith('POST')).length, 0)
  }
})

test('a key that has another purchase in the store is refused, and asks nobody', async (t) => {
  const { wallet, store, mayfly, purchase } = await aBuyer(t)
  await mayfly().buyCatch(purchase)
  const phrase = 'idempotency key reused with a different request'
  await assert.rejects(mayfly().buyPulse(purchase), { phrase, status: 0 })
  const elsewhere = createMayfly({ baseUrl: 'http://127.0.0.1:1', store, wallet })
  await assert.rejects(elsewhere.buyCatch(purchase), { phrase })
})

test('what a wallet has paid is kept, though another program has written since', async (t) => {
  const buyer = await aBuyer(t)
  const { wallet, store } = buyer
  const begun = Promise.withResolvers<void>()
  const over = Promise.withResolvers<void>()
  const slow = {
    ...wallet,
    async pay(bolt11: string) {
      begun.resolve()
      await over.promise
      return wallet.pay(bolt11)
    },
  }
  const first = buyer.buy({ wallet: slow })
  await begun.promise
  // The clock is set, so the call looks like an old one, and the wallet fails what it tries again.
  buyer.minutesPassed = 13
  wallet.answer = { state: 'failed' }
  wallet.next = 'not paid'
  await assert.rejects(buyer.buy(), { phrase: 'payment outcome unknown' })
  wallet.next = 'paid'
  over.resolve()
  const inbox = await first
  const [record] = store.records()
  assert.deepEqual([record?.state, record?.resource], ['delivered', inbox])
  assert.match(record?.preimage ?? '', /^[0-9a-f]{64}$/)
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
  const mayfly = createMayfly({ baseUrl: server.url, wallet, store })
  await assert.rejects(mayfly.buyCatch({ planId: 'spark' }), { phrase: 'payment failed' })
  assert.deepEqual(wallet.asked, [])
  assert.deepEqual(rows.state(), ['quoted'])
})

test('a record keeps the fee that the wallet paid, and the most that it can have spent', async (t) => {
  const { wallet, store, buy } = await aBuyer(t)
  wallet.next = 'not paid'
  for (let attempt = 0; attempt < 3; attempt++) {
    await assert.rejects(buy(), { phrase: 'payment failed' })
    // A wallet that did not pay has spent nothing, however often it is asked.
    assert.equal(store.records()[0]?.invoices[0]?.reservedMsat, 100_000)
  }
  wallet.next = 'paid'
  const pay = async (bolt11: string) => ({ ...(await wallet.pay(bolt11)), feeMsat: 1_234 })
  await buy({ wallet: { ...wallet, pay } })
  assert.equal(store.records()[0]?.feeMsat, 1_234)
})
