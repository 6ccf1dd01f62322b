/** A wallet on phoenixd. */
import { base64, utf8 } from '../../lib/bytes.ts'
import type { Wallet } from '../wallet.ts'
import { fields, NodeRefused, requestNode, textOf } from './node-fetch.ts'
import { nodeAt, type PayingOptions, type Payment, payingWallet } from './paying.ts'

/** phoenixd's address and password. `maxFeeSats` limits its fixed fee, in satoshis. */
export type PhoenixdWalletOptions = PayingOptions & {
  /** `http://127.0.0.1:9740` */
  url: string
  /** The full-access `http-password`. The limited-access one cannot pay. */
  password: string
  fetch?: typeof globalThis.fetch
}

// phoenixd's fee for any payment: 0.4 % and 4 sat. It accepts no fee limit.
const FEE_SHARE = 0.004
const FEE_BASE_MSAT = 4_000

/**
 * Pays from phoenixd. It accepts no fee limit, so a payment whose fixed fee (0.4 % and 4 sat) exceeds
 * `maxFeeSats` is not sent.
 *
 * ```ts
 * const wallet = phoenixdWallet({ url: 'http://127.0.0.1:9740', password })
 * ```
 */
export function phoenixdWallet(options: PhoenixdWalletOptions): Wallet {
  const { url, password, fetch = globalThis.fetch } = options
  const base = url.replace(/\/+$/, '')
  const headers = { authorization: `Basic ${base64(utf8(`:${password}`))}` }

  return payingWallet(
    {
      name: 'phoenixd',
      id: nodeAt('phoenixd', url),
      refusesRepeats: true,
      async lookup({ paymentHash }, signal) {
        const answer = await requestNode(fetch, `${base}/payments/outgoingbyhash/${paymentHash}`, {
          method: 'GET',
          headers,
          signal,
        })
        if (answer.status === 404 && NO_PAYMENT.test(answer.text)) return { state: 'none' }
        if (answer.status !== 200) throw new NodeRefused(refusal(answer.status, answer.text))
        return outgoing(fields(answer.body))
      },
      async send({ bolt11, amountMsat }, maxFeeMsat, signal) {
        if (amountMsat * FEE_SHARE + FEE_BASE_MSAT > maxFeeMsat) {
          return { state: 'failed', reason: 'its fee would be above the limit' }
        }
        const { status, body, text } = await requestNode(fetch, `${base}/payinvoice`, {
          method: 'POST',
          headers,
          form: { invoice: bolt11 },
          signal,
        })
        if (status >= 500) throw new NodeRefused(refusal(status, text))
        const { paymentPreimage, routingFeeSat, reason } = fields(body)
        if (status === 200 && typeof paymentPreimage === 'string') {
          const feeMsat = typeof routingFeeSat === 'number' ? routingFeeSat * 1000 : undefined
          return { state: 'paid', preimage: paymentPreimage, feeMsat }
        }
        // A failed payment is answered with 200 too, and a reason.
        if (status === 200) return { state: 'failed', reason: textOf(reason) ?? 'no reason given' }
        return { state: 'failed', reason: refusal(status, text) }
      },
    },
    options,
  )
}

/** The 404 of phoenixd itself, and of its older versions. That of a proxy says nothing of a payment. */
const NO_PAYMENT = /^(not found|unknown endpoint)/i

/** Only a preimage proves the payment. A completed payment without one has failed. */
function outgoing(of: Record<string, unknown>): Payment {
  const { isPaid, preimage, completedAt, invoice } = of
  if (typeof preimage === 'string' && isPaid === true) {
    return { state: 'paid', preimage, bolt11: invoice }
  }
  if (completedAt === undefined || completedAt === null) return { state: 'pending' }
  return { state: 'failed', reason: 'the payment failed' }
}

function refusal(status: number, text: string): string {
  if (status === 401 || status === 403) {
    return 'phoenixd does not accept the password; paying needs the full http-password'
  }
  return `phoenixd: ${textOf(text) ?? 'no reason given'} (HTTP ${status})`
}
