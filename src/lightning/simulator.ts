/**
 * The simulator, for trying Mayfly out. It signs real regtest invoices with a throwaway key, and a request
 * pays them. Only the money is not real.
 */
import { createECDH, hash, randomBytes } from 'node:crypto'
import type { Db, Statement } from '../db/db.ts'
import type { Clock, HeldClock } from '../lib/clock.ts'
import { readableInvoice } from '../protocol/bolt11.ts'
import { encodeInvoice } from '../protocol/bolt11-sign.ts'
import {
  type InvoiceRequest,
  type Lightning,
  type SignedInvoice,
  UnknownInvoice,
} from './lightning.ts'
import { checkInvoiceRequest } from './node/check-invoice.ts'

const NETWORK = 'regtest'
/** Invoices are stored this long after their expiry, for look-ups of orders that are still open. */
const KEEP_MS = 7 * 24 * 60 * 60 * 1000
const FORGET_EVERY_MS = 60 * 60 * 1000

type PayOutcome =
  | { kind: 'paid'; preimage: string; paymentHash: string }
  | { kind: 'unknown' }
  | { kind: 'expired' }

export type Simulator = Lightning & {
  signInvoice(request: InvoiceRequest): SignedInvoice
  /** Pays one of its invoices. A repeat pays nothing and returns the same preimage. */
  pay(bolt11: string): Promise<PayOutcome>
}

type InvoiceRow = {
  payment_hash: string
  bolt11: string
  preimage: string
  state: 'open' | 'settled'
  expires_at: number
}

/** The throwaway key is stored, so that the node has the same id after a restart. */
export async function createSimulator(deps: {
  db: Db
  /** Old invoices are deleted unless it is held. */
  clock: Clock & Partial<HeldClock>
}): Promise<Simulator> {
  const { db, clock } = deps
  const privateKey = await nodeKey(db)
  const nodeId = nodeIdOf(privateKey)
  const random32 = createRandom32()
  const listeners = new Set<(paymentHash: string) => void>()
  let forgetAt = clock.now() + FORGET_EVERY_MS

  return {
    info: async () => ({ network: NETWORK, synced: true, nodeId }),

    async createInvoice(request) {
      const { statements, ...made } = signInvoice(request)
      await db.write({ lockKey: made.paymentHash, statements: { invoice: statements } })
      return made
    },

    signInvoice,

    async lookupInvoice(paymentHash) {
      const invoice = await invoiceOf(paymentHash)
      if (!invoice) throw new UnknownInvoice()
      if (invoice.state === 'settled') return { state: 'settled' }
      // The clock that `pay` uses.
      return invoice.expires_at <= clock.now()
        ? { state: 'dead', isFinal: true }
        : { state: 'open' }
    },

    watch(onSettled, signal) {
      return new Promise((resolve) => {
        if (signal.aborted) return resolve()
        listeners.add(onSettled)
        signal.addEventListener(
          'abort',
          () => {
            listeners.delete(onSettled)
            resolve()
          },
          { once: true },
        )
      })
    },

    async pay(bolt11) {
      const invoice = await invoiceOf(readableInvoice(bolt11)?.paymentHash ?? '')
      if (invoice?.bolt11 !== bolt11.toLowerCase()) return { kind: 'unknown' }
      const { payment_hash: paymentHash, preimage } = invoice
      const { paid } = await db.write({
        lockKey: paymentHash,
        statements: {
          paid: {
            text: `update simulator_invoice set state = 'settled'
            where payment_hash = $1 and state = 'open' and expires_at > $2 returning *`,
            values: [paymentHash, clock.now()],
          },
        },
      })
      if (paid.length === 1) for (const listener of listeners) listener(paymentHash)
      else if ((await invoiceOf(paymentHash))?.state !== 'settled') return { kind: 'expired' }
      return { kind: 'paid', preimage, paymentHash }
    },
  }

  function signInvoice(request: InvoiceRequest): SignedInvoice {
    checkInvoiceRequest(request)
    const { amountMsat, memo, expirySeconds } = request
    const now = clock.now()
    const preimage = random32()
    const paymentHash = hash('sha256', preimage, 'hex')
    const timestamp = Math.floor(now / 1000)
    const bolt11 = encodeInvoice(
      {
        network: NETWORK,
        amountMsat,
        timestamp,
        expirySeconds,
        paymentHash,
        paymentSecret: random32(),
        description: memo,
      },
      privateKey,
    )
    const expiresAt = (timestamp + expirySeconds) * 1000
    const statements: Statement[] = [
      {
        text: `insert into simulator_invoice (payment_hash, bolt11, preimage, state, expires_at)
          values ($1, $2, $3, 'open', $4)`,
        values: [paymentHash, bolt11, preimage.toString('hex'), expiresAt],
      },
    ]
    if (now > forgetAt && !clock.isHeld?.()) {
      forgetAt = now + FORGET_EVERY_MS
      statements.push(forget(now - KEEP_MS))
    }
    return { bolt11, paymentHash, network: NETWORK, expiresAt, statements }
  }

  async function invoiceOf(paymentHash: string): Promise<InvoiceRow | undefined> {
    const [invoice] = await db.read<InvoiceRow>(
      'select * from simulator_invoice where payment_hash = $1',
      paymentHash,
    )
    return invoice
  }
}

/** Random bytes, 32 at a time. They are fetched for 64 calls at once, which takes as long as for one. */
function createRandom32(): () => Buffer {
  let pool = Buffer.alloc(0)
  let at = 0
  return () => {
    if (at === pool.length) {
      pool = randomBytes(64 * 32)
      at = 0
    }
    at += 32
    return pool.subarray(at - 32, at)
  }
}

const forget = (before: number) => ({
  text: 'delete from simulator_invoice where expires_at < $1',
  values: [before],
})

/** By Node's own library, so that a start does not load the one that signs. */
function nodeIdOf(privateKey: Uint8Array): string {
  const key = createECDH('secp256k1')
  key.setPrivateKey(privateKey)
  return key.getPublicKey('hex', 'compressed')
}

async function nodeKey(db: Db): Promise<Uint8Array> {
  await db.write({
    lockKey: 'simulator_key',
    statements: {
      key: {
        text: `insert into meta (name, value) values ('simulator_key', $1) on conflict (name) do nothing`,
        values: [randomBytes(32).toString('hex')],
      },
    },
  })
  const [row] = await db.read<{ value: string }>(
    `select value from meta where name = 'simulator_key'`,
  )
  return Buffer.from(row?.value ?? '', 'hex')
}
