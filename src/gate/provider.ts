/** The provider that receives payments: the project's Lightning Address, or the simulator. */
import type { Clock } from '../lib/clock.ts'
import type { Lightning, Network } from '../lightning/lightning.ts'
import { decodeInvoice, InvalidInvoice, type Invoice } from '../protocol/bolt11.ts'
import { payeeOf } from '../protocol/bolt11-sign.ts'
import { LnurlError, parseLightningAddress, requireSendable } from '../protocol/lnurl.ts'
import type { AllowedHosts } from '../protocol/public-url.ts'
import type { LnurlClient } from './lnurl-client.ts'
import type { VerificationKind } from './schema.ts'

export type Provider = {
  /**
   * Checks, when the operator saves an address, that it accepts each of these prices. Returns how
   * payments will be verified.
   * @throws LnurlError whose message is meant for the operator.
   */
  probe(address: string, pricesSats: number[]): Promise<VerificationKind>
  /** A new, checked invoice. @throws LnurlError */
  invoice(address: string, amountMsat: number): Promise<CheckedInvoice & { verify: string | null }>
  /** Whether the provider reports the invoice as paid. @throws LnurlError */
  isSettled(invoice: IssuedInvoice): Promise<boolean>
  close(): Promise<void>
}

/** An invoice of this address, and where its payment can be verified. */
type IssuedInvoice = { address: string; bolt11: string; paymentHash: string; verify: string }

export function createLnurlProvider({
  client,
  network,
  clock,
}: {
  client: LnurlClient
  network: Network
  clock: Clock
}): Provider {
  const invoice: Provider['invoice'] = async (address, amountMsat) => {
    const { bolt11, verify } = await client.requestInvoice(address, amountMsat)
    const checked = checkInvoice(bolt11, { network, amountMsat, now: clock.now() })
    return { ...checked, verify: verify?.href ?? null }
  }

  return {
    invoice,

    async probe(address, pricesSats) {
      const params = await client.payParams(address)
      for (const priceSats of pricesSats) requireSendable(params, priceSats * 1000)
      // Only the answer with an invoice has `verify`, so this requests one and leaves it unpaid.
      const leastSats = Math.ceil(params.minSendableMsat / 1000)
      const sats = pricesSats.length > 0 ? Math.min(...pricesSats) : leastSats
      const { verify } = await invoice(address, sats * 1000)
      return verify === null ? 'preimage' : 'provider'
    },

    async isSettled({ verify, ...of }) {
      return (await client.verify(verify, of)).state === 'settled'
    },

    close: () => client.close(),
  }
}

/** A provider for any address, on the simulator in this process. */
export function createSimulatedProvider({
  lightning,
  allowed,
  invoiceSeconds,
  clock,
}: {
  lightning: Pick<Lightning, 'createInvoice' | 'lookupInvoice'>
  allowed: AllowedHosts
  invoiceSeconds: number
  clock: Clock
}): Provider {
  return {
    async probe(address) {
      parseLightningAddress(address, allowed)
      return 'provider'
    },

    async invoice(address, amountMsat) {
      parseLightningAddress(address, allowed)
      const { bolt11 } = await lightning.createInvoice({
        amountMsat,
        memo: 'Mayfly GATE on the simulator',
        expirySeconds: invoiceSeconds,
      })
      const expected = { network: 'regtest', amountMsat, now: clock.now() } as const
      return { ...checkInvoice(bolt11, expected), verify: 'simulator:' }
    },

    async isSettled({ paymentHash }) {
      return (await lightning.lookupInvoice(paymentHash)).state === 'settled'
    },

    close: async () => {},
  }
}

/** The message of a provider's failure. Any other error is a bug, and is thrown again. */
export function failureReason(error: unknown): string {
  if (error instanceof LnurlError) return error.message
  throw error
}

/** The provider makes a new invoice for each request. An older one may belong to another payer. */
const MAX_AGE_MS = 10 * 60 * 1000
/** A payer needs at least this long. */
const MIN_LIFE_MS = 60 * 1000
/** Payments are honoured for as long as the invoice lives, so that time needs a limit. */
const MAX_LIFE_MS = 24 * 60 * 60 * 1000

type CheckedInvoice = {
  bolt11: string
  paymentHash: string
  /** Unix milliseconds. */
  expiresAt: number
}

/** Checks an invoice before a payer sees it: it must match the quote exactly. @throws LnurlError */
export function checkInvoice(
  bolt11: string,
  expected: { network: Network; amountMsat: number; now: number },
): CheckedInvoice {
  const invoice = signed(bolt11)
  if (invoice.network !== expected.network) {
    throw new LnurlError(`the invoice is for ${invoice.network}, not ${expected.network}`)
  }
  if (invoice.amountMsat === null) throw new LnurlError('the invoice leaves the amount open')
  if (invoice.amountMsat !== expected.amountMsat)
    throw new LnurlError('the invoice is over another sum')
  if (Math.abs(invoice.timestamp * 1000 - expected.now) > MAX_AGE_MS) {
    throw new LnurlError('the invoice was not made just now')
  }
  const lifeMs = invoice.expiresAt - expected.now
  if (lifeMs < MIN_LIFE_MS) throw new LnurlError('the invoice expires too soon')
  if (lifeMs > MAX_LIFE_MS) throw new LnurlError('the invoice lives for too long')
  return {
    bolt11: invoice.bolt11,
    paymentHash: invoice.paymentHash,
    expiresAt: invoice.expiresAt,
  }
}

function signed(bolt11: string): Invoice {
  try {
    const invoice = decodeInvoice(bolt11)
    payeeOf(invoice)
    return invoice
  } catch (error) {
    if (!(error instanceof InvalidInvoice)) throw error
    throw new LnurlError(`the invoice cannot be used: ${error.message}`, { cause: error })
  }
}
