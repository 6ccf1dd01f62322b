/** A wallet over Nostr Wallet Connect (NIP-47), with the application's own client. */
import { codeOf } from '../../lib/errors.ts'
import type { Wallet } from '../wallet.ts'
import { fields, NodeRefused, textOf } from './node-fetch.ts'
import { type PayingOptions, type Payment, payingWallet } from './paying.ts'

/** The methods that a client must have, such as the `NWCClient` of @getalby/sdk. */
export type NwcClient = {
  /** The wallet's public key, which tells it from another. */
  walletPubkey?: string
  payInvoice(request: { invoice: string }): Promise<{ preimage: string }>
  /** Without it, the outcome of a payment whose answer was lost stays unknown. */
  lookupInvoice?(request: { payment_hash: string }): Promise<unknown>
}

// NIP-47's codes for a payment that the wallet did not try. After any other code, money may be under
// way: wallets also send PAYMENT_FAILED for a payment that takes too long.
const NOT_TRIED = new Set([
  'RATE_LIMITED',
  'NOT_IMPLEMENTED',
  'INSUFFICIENT_BALANCE',
  'QUOTA_EXCEEDED',
  'RESTRICTED',
  'UNAUTHORIZED',
  'UNSUPPORTED_ENCRYPTION',
])
/** What the owner of the wallet can change about a refusal. */
const MEANING: Record<string, string | undefined> = {
  RESTRICTED: 'its connection lacks pay_invoice',
  UNAUTHORIZED:
    'it does not know the connection; make a new one with pay_invoice and lookup_invoice',
  NOT_IMPLEMENTED: 'it cannot pay: it has no pay_invoice',
  QUOTA_EXCEEDED: "the connection's budget does not cover it",
}
const NO_LOOKUP = new Set(['NOT_IMPLEMENTED', 'RESTRICTED'])
// INTERNAL is missing, since clients also use it for a missing answer.
const SAID_BY_WALLET = new Set([...NOT_TRIED, 'PAYMENT_FAILED', 'NOT_FOUND'])

/**
 * Pays from a wallet over Nostr. The wallet chooses the fee, and NIP-47 has no limit for it, so give
 * the connection a budget. The connection needs pay_invoice and lookup_invoice.
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
  /** Whether the wallet supports look-ups. The look-up before each payment finds out. */
  let hasBooks = client.lookupInvoice !== undefined
  return payingWallet(
    {
      name: 'the wallet',
      id: `Nostr wallet ${client.walletPubkey ?? ''}`.trim(),
      refusesRepeats: false,
      lacks: () => (hasBooks ? null : 'its connection lacks lookup_invoice'),
      async lookup({ paymentHash }) {
        if (!client.lookupInvoice) return { state: 'none' }
        try {
          const known = outgoing(fields(await client.lookupInvoice({ payment_hash: paymentHash })))
          hasBooks = true
          return known
        } catch (error) {
          // A client tries each of its relays, and says no more than this if none is there.
          if (error instanceof AggregateError) throw new NodeRefused('no relay answers')
          const code = codeOf(error)
          if (code === 'NOT_FOUND') hasBooks = true
          if (NO_LOOKUP.has(code)) hasBooks = false
          if (code === 'NOT_FOUND' || NO_LOOKUP.has(code)) return { state: 'none' }
          throw SAID_BY_WALLET.has(code) ? new NodeRefused(`the wallet said ${code}`) : error
        }
      },
      async send({ bolt11 }) {
        try {
          const paid = fields(await client.payInvoice({ invoice: bolt11 }))
          return paidWith(paid)
        } catch (error) {
          const code = codeOf(error)
          const isRefusal = (hasBooks ? SAID_BY_WALLET : NOT_TRIED).has(code)
          if (!isRefusal) throw error
          const words = error instanceof Error ? textOf(error.message) : null
          const said = words ? `${code}, ${words}` : code
          const meaning = MEANING[code]
          return { state: 'failed', reason: meaning ? `${meaning} (${said})` : said }
        }
      },
    },
    options,
  )
}

/**
 * Ignores incoming payments: a wallet that also issued the invoice reports it as incoming. That an invoice has expired
 * says nothing of a payment that was under way by then.
 */
function outgoing(payment: Record<string, unknown>): Payment {
  const { type, state, settled_at } = payment
  if (type === 'incoming' || state === 'expired') return { state: 'none' }
  const isSettled = state === 'settled' || (state === undefined && Boolean(settled_at))
  if (isSettled) return paidWith(payment)
  if (state === 'failed') return { state: 'failed', reason: 'the payment failed' }
  return { state: 'pending' }
}

const paidWith = ({ preimage, fees_paid, invoice }: Record<string, unknown>): Payment => ({
  state: 'paid',
  preimage: typeof preimage === 'string' ? preimage : '',
  feeMsat: fees_paid,
  bolt11: invoice,
})
