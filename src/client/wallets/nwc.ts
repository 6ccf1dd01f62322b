/** A wallet over Nostr Wallet Connect (NIP-47), through whatever client the application has. */
import { codeOf } from '../../lib/errors.ts'
import type { Wallet } from '../wallet.ts'
import { fields, NodeRefused, textOf } from './node-fetch.ts'
import { type PayingOptions, type Payment, payingWallet } from './paying.ts'

/**
 * What is used of a client, such as the `NWCClient` of @getalby/sdk.
 *
 * ```ts
 * const client: NwcClient = new NWCClient({ nostrWalletConnectUrl })
 * ```
 */
export type NwcClient = {
  payInvoice(request: { invoice: string }): Promise<{ preimage: string }>
  /** Without it, a payment whose answer was lost stays unknown. */
  lookupInvoice?(request: { payment_hash: string }): Promise<unknown>
}

// NIP-47's codes for a request that the wallet did not even try. After any other, money may be
// under way: PAYMENT_FAILED is also said of a payment that takes too long.
const NOT_TRIED = new Set([
  'RATE_LIMITED',
  'NOT_IMPLEMENTED',
  'INSUFFICIENT_BALANCE',
  'QUOTA_EXCEEDED',
  'RESTRICTED',
  'UNAUTHORIZED',
  'UNSUPPORTED_ENCRYPTION',
])
const NO_LOOKUP = new Set(['NOT_IMPLEMENTED', 'RESTRICTED'])
// INTERNAL is missing: clients also say it of an answer that did not come.
const SAID_BY_WALLET = new Set([...NOT_TRIED, 'PAYMENT_FAILED', 'NOT_FOUND'])

/**
 * Pays from a wallet over Nostr. The wallet chooses the fee: NIP-47 has no limit for it, so give the
 * connection a budget. It needs pay_invoice and lookup_invoice.
 *
 * ```ts
 * import { NWCClient } from '@getalby/sdk/nwc'
 * const wallet = nwcWallet(new NWCClient({ nostrWalletConnectUrl }))
 * ```
 */
export function nwcWallet(
  client: NwcClient,
  options: Pick<PayingOptions, 'timeoutMs'> = {},
): Wallet {
  /** Whether the wallet's books can be asked; every payment is preceded by a look-up that tells. */
  let hasBooks = client.lookupInvoice !== undefined
  return payingWallet(
    {
      name: 'the wallet',
      refusesRepeats: false,
      async lookup({ paymentHash }) {
        if (!client.lookupInvoice) return { state: 'none' }
        try {
          const known = outgoing(fields(await client.lookupInvoice({ payment_hash: paymentHash })))
          hasBooks = true
          return known
        } catch (error) {
          const code = codeOf(error)
          if (code === 'NOT_FOUND') hasBooks = true
          if (NO_LOOKUP.has(code)) hasBooks = false
          if (code === 'NOT_FOUND' || NO_LOOKUP.has(code)) return { state: 'none' }
          throw SAID_BY_WALLET.has(code) ? new NodeRefused(`the wallet said ${code}`) : error
        }
      },
      async send({ bolt11 }) {
        try {
          const { preimage } = fields(await client.payInvoice({ invoice: bolt11 }))
          return { state: 'paid', preimage: typeof preimage === 'string' ? preimage : '' }
        } catch (error) {
          const code = codeOf(error)
          const isRefusal = (hasBooks ? SAID_BY_WALLET : NOT_TRIED).has(code)
          if (!isRefusal) throw error
          const words = error instanceof Error ? textOf(error.message) : null
          return { state: 'failed', reason: words ? `${code}, ${words}` : code }
        }
      },
    },
    options,
  )
}

/** A wallet that also made the invoice knows it as incoming, which is not the payment. */
function outgoing({ type, state, preimage, settled_at }: Record<string, unknown>): Payment {
  if (type === 'incoming') return { state: 'none' }
  const isSettled = state === 'settled' || (state === undefined && Boolean(settled_at))
  if (isSettled) return { state: 'paid', preimage: typeof preimage === 'string' ? preimage : '' }
  if (state === 'failed' || state === 'expired') {
    return { state: 'failed', reason: 'the payment failed' }
  }
  return { state: 'pending' }
}
