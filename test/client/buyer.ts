/** A buyer with the SDK: its wallet keeps every attempt, its store outlives the program, and its test owns its clock. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createHttp } from '../../src/client/http.ts'
import {
  createMayfly,
  type PurchaseFromWallet,
  type PurchaseProgress,
  type PurchaseRecord,
  type PurchaseStore,
  type Wallet,
  type WalletAnswer,
} from '../../src/client/index.ts'
import { planOrder } from '../../src/client/order-requests.ts'
import { createPayments } from '../../src/client/payments.ts'
import type { After } from '../support/folder.ts'
import { startServer } from '../support/server.ts'
import { testWallet } from '../support/wallet.ts'

export const MINUTE = 60_000

export class Killed extends Error {}

/** A store that outlives the program, which dies at this write: just before it, or just after. */
export function mortalStore(at = 0, when: 'before' | 'after' = 'before') {
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
  return {
    ...store,
    records: () => [...rows.values()],
    state: () => [...rows.values()].map(({ state }) => state),
  }
}

/** A wallet that keeps every attempt. A test can replace what it says when it is looked into. */
export function keepingWallet(server: { url: string }) {
  const wallet = testWallet(server)
  const paid = new Map<string, string>()
  const { pay } = wallet
  const keeping = Object.assign(wallet, {
    answer: null as WalletAnswer | null,
    keepsEveryAttempt: true,
    async pay(...asked: Parameters<Wallet['pay']>) {
      const done = await pay(...asked)
      paid.set(asked[0], done.preimage)
      return done
    },
    async lookup(bolt11: string): Promise<WalletAnswer> {
      if (keeping.answer) return keeping.answer
      const preimage = paid.get(bolt11)
      return preimage === undefined ? { state: 'unknown' } : { state: 'paid', preimage }
    },
  })
  return keeping
}

export const named = (wallet: Wallet, id: string): Wallet => ({ ...wallet, id: async () => id })

/** The options of a call that its caller leaves at this stage. */
export function leavingAt(stage: PurchaseProgress['stage'], reason?: Error) {
  const leaving = new AbortController()
  return {
    signal: leaving.signal,
    onProgress(progress: PurchaseProgress) {
      if (progress.stage === stage) leaving.abort(reason)
    },
  }
}

export async function aBuyer(t: After, { store = mortalStore() } = {}) {
  const server = await startServer(t)
  const wallet = keepingWallet(server)
  const idempotencyKey = randomUUID()
  const purchase = { planId: 'spark', idempotencyKey } as const
  const buyer = {
    server,
    wallet,
    store,
    idempotencyKey,
    purchase,
    /** What is between the buyer and the service. */
    fetch: globalThis.fetch,
    /** By the buyer's clock. */
    minutesPassed: 0,
    /** A program of the buyer. */
    mayfly: () =>
      createMayfly({
        baseUrl: server.url,
        wallet,
        store,
        fetch: (...asked) => buyer.fetch(...asked),
      }),
    /** The same purchase, by the buyer's clock. */
    buy: (more: Partial<PurchaseFromWallet> = {}) =>
      createPayments(
        createHttp(server.url, (...asked) => buyer.fetch(...asked)),
        {
          maxSats: 1000,
          service: server.url,
          store,
          now: () => Date.now() + buyer.minutesPassed * MINUTE,
        },
      ).buy(planOrder('catch', 'spark'), { ...purchase, wallet, ...more }),
    /** Begins the purchase: the wallet has the invoice, and does not say whether it paid. */
    async begin(): Promise<void> {
      wallet.next = 'unknown'
      await assert.rejects(buyer.buy(leavingAt('uncertain')), { phrase: 'payment outcome unknown' })
    },
  }
  return buyer
}
