/** The provider that receives payments: the project's Lightning Address, or the simulator. */
import type { Clock } from '../lib/clock.ts'
import type { Lightning, Network } from '../lightning/lightning.ts'
import { LnurlError, parseLightningAddress, requireSendable } from '../protocol/lnurl.ts'
import type { AllowedHosts } from '../protocol/public-url.ts'
import { type CheckedInvoice, checkInvoice } from './check-invoice.ts'
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
  isSettled(invoice: { bolt11: string; paymentHash: string; verify: string }): Promise<boolean>
  close(): Promise<void>
}

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
