/** A wallet for services on the simulator, which pays with their `POST /simulator/pay`. */
import { type Wallet, WalletError } from '../wallet.ts'
import { requestNode } from './node-fetch.ts'
import { failureOf, notPaid, provenPreimage, readInvoice, unknown } from './paying.ts'

/** The service whose simulator pays. */
export type SimulatorWalletOptions = {
  /** The service's address. */
  baseUrl: string
  fetch?: typeof globalThis.fetch
  /** The time limit of one request, in milliseconds. Default: 10 000. */
  timeoutMs?: number
}

// A repeat pays nothing and returns the same preimage, so a lost answer is simply requested again.
const ATTEMPTS = 3

/**
 * Pays invoices of a service that runs on the simulator. No real money moves.
 *
 * ```ts
 * const wallet = simulatorWallet({ baseUrl: 'http://127.0.0.1:8402' })
 * const { preimage } = await wallet.pay(quote.bolt11)
 * ```
 */
export function simulatorWallet(options: SimulatorWalletOptions): Wallet {
  const { baseUrl, fetch = globalThis.fetch, timeoutMs = 10_000 } = options
  const url = `${baseUrl.replace(/\/+$/, '')}/simulator/pay`

  return {
    async pay(bolt11, { signal } = {}) {
      const invoice = readInvoice(bolt11)
      if (signal?.aborted) throw notPaid('the payment was cancelled before it was sent')
      let lost = ''
      for (let attempt = 0; attempt < ATTEMPTS && !signal?.aborted; attempt++) {
        const limit = AbortSignal.timeout(timeoutMs)
        try {
          const { status, body } = await requestNode(fetch, url, {
            method: 'POST',
            json: { bolt11 },
            signal: signal ? AbortSignal.any([limit, signal]) : limit,
          })
          // After a lost answer, the payment may have succeeded: only a 400 still means a refusal.
          const isRefusal = lost === '' ? status >= 400 && status < 500 : status === 400
          if (isRefusal && status !== 408) throw refusal(status, body)
          const preimage = status === 200 ? await provenPreimage(invoice, preimageOf(body)) : null
          if (preimage !== null) return { preimage, feeMsat: 0 }
          lost = `HTTP ${status}`
        } catch (error) {
          if (error instanceof WalletError) throw error
          lost = failureOf(error)
        }
      }
      throw unknown(`the simulator was asked to pay and gave no proof of it (${lost})`)
    },
    // It answers a repeat with the same preimage, and pays nothing more.
    keepsEveryAttempt: true,
    id: async () => 'the simulator',
    maxFeeMsat: () => 0,
  }
}

function refusal(status: number, body: unknown): WalletError {
  const isError = typeof body === 'object' && body !== null && 'error' in body
  const phrase = isError && typeof body.error === 'string' ? body.error : 'no simulator answers'
  return notPaid(`the simulator did not pay: ${phrase} (HTTP ${status})`)
}

function preimageOf(body: unknown): string {
  const isPaid = typeof body === 'object' && body !== null && 'preimage' in body
  return isPaid && typeof body.preimage === 'string' ? body.preimage : ''
}
