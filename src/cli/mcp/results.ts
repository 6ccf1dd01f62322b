/** What the buying tools answer. No token is in it. */
import type { PaymentQuote, SavedCapability } from '../../client/index.ts'
import type { PurchaseResult } from '../../mcp-tools/purchases.ts'
import type { Product } from '../vault/saved.ts'
import type { Session } from './session.ts'

/** What is saved under a name. */
export function settled(session: Session, name: string, saved: SavedCapability): PurchaseResult {
  const { capability, baseUrl } = saved
  const { product, publicId, expiresAt } = capability
  const url = product === 'catch' ? { url: `${baseUrl}/c/${publicId}` } : {}
  const code = 'code' in capability && session.showCodes ? { code: capability.code } : {}
  return {
    state: 'settled',
    name,
    bought: { product, publicId, expiresAt, ...url, ...code } as PurchaseResult['bought'] & object,
    next: NEXT[product](name, session.showCodes),
  }
}

const NEXT: Record<Product, (name: string, showCodes: boolean) => string> = {
  catch: (name) =>
    `It is saved as ${name}. Give the url to the sender, and call wait_for_webhook or read_inbox with this name.`,
  pulse: (name) => `It is saved as ${name}. Call ping with this name each time the job has run.`,
  whisper: (name, showCodes) =>
    showCodes
      ? `It is saved as ${name}. Whoever has the code can read it: hand it to the reader alone.`
      : `It is saved as ${name}. The user gets the code for the reader with: mayfly show ${name} --reveal`,
}

/** The invoice, where no wallet pays it. */
export function unpaid(name: string, quote: PaymentQuote): PurchaseResult {
  const { orderId, product, planId, amountSats, bolt11, paymentHash, expiresAt, network } = quote
  return {
    state: 'payment required',
    name,
    quote: {
      ...{ orderId, product, planId, amountSats },
      ...{ bolt11, paymentHash, expiresAt, network },
    },
    next: `Show the invoice (bolt11) to the user, who pays it once from any Lightning wallet. Then call check_order with the name ${name}.`,
  }
}
