/**
 * Decides what a purchase request means: a new order, or something about one that is there. It is a pure function of
 * the request and of what was read, and test/api/order-of-checks.md has its tables.
 */
import { provesPayment } from '../protocol/preimage.ts'
import { type CheckedCredential, type CredentialStatus, paymentHashIn } from './flows/flow.ts'
import type { KeyedBy } from './keys.ts'
import { isSameRequest, isSealed, type OrderRequest } from './order.ts'
import type { OrderRow } from './store.ts'

/** A purchase request. */
export type Ask = {
  /** Null: a purchase of one URL, which has no key. */
  by: KeyedBy | null
  request: OrderRequest
  credential: CheckedCredential<unknown>
  /** What stood in `Payment-Preimage`, if anything did. */
  preimage?: string | null
  /** HEAD: whatever it proves, it delivers nothing. */
  isPeek?: boolean
}

/** The orders that a request may mean. */
export type Candidates = { byKey: OrderRow | null; byHash: OrderRow | null }

export type Verdict =
  /** No order is meant, so this is a new purchase. */
  | { do: 'open' }
  /** The credential proves a payment to us, but the store has no order for it: an alarm. */
  | { do: 'raise the alarm'; paymentHash: string }
  /** All others are about an order. `isByKey`: whether the key leads to it, or only the credential does. */
  | {
      do:
        | 'refuse another request'
        | 'say how it ended'
        /** The payment is proven, and so is who paid. */
        | 'redeem'
        /** The payment is proven, but the credential was made for another request: anybody may have sent it. */
        | 'settle'
        /** Nothing is proven: what the client gets depends on the order, and on whether it opened it. */
        | 'show'
        /** The same, with a credential that is wrong. */
        | 'show, and refuse the credential'
      order: OrderRow
      isByKey: boolean
    }

/** @param isForgotten whether the order of the credential was deleted after it was over. */
export function decide(
  ask: Ask,
  { byKey: own, byHash, isForgotten, now }: Candidates & { isForgotten: boolean; now: number },
): Verdict {
  const { request, credential } = ask
  const paymentHash = paymentHashIn(credential)
  const isOwn = own !== null && own.payment_hash === paymentHash
  // Whatever a credential pays for, the key's own order is another purchase, or has ended.
  const isDecided = own !== null && (!isSameRequest(own, request) || isSealed(own, now))

  if (paymentHash !== null && !isOwn && !isDecided) {
    const isLost =
      byHash === null
        ? !isForgotten
        : // Restored as another product than its credential names: the operator has to look again.
          byHash.restored_at !== null &&
          byHash.product !== request.product &&
          !isSealed(byHash, now)
    if (credential.kind === 'verified' && isLost) return { do: 'raise the alarm', paymentHash }
    const isMeant = byHash !== null && isMeantAlone(ask, byHash, now)
    if (isMeant && !(own && credential.kind === 'invalid')) {
      return verdictOn(byHash, ask, { isByKey: false, status: credential.kind, now })
    }
  }
  if (own === null) return { do: 'open' }
  const status = paymentHash === null || isOwn ? credential.kind : 'invalid'
  return verdictOn(own, ask, { isByKey: true, status, now })
}

/** Whether a credential leads to its order without the order's key. Of what is over it leads to nothing. */
function isMeantAlone({ by, request, credential }: Ask, order: OrderRow, now: number): boolean {
  if (!isSameRequest(order, request)) return false
  if (by !== null) return !isSealed(order, now)
  // A client that keeps one credential for each address must be able to buy again.
  return order.state === 'dead' ? credential.kind !== 'invalid' : !isOverAndUsed(order, now)
}

function verdictOn(
  order: OrderRow,
  { request, preimage }: Ask,
  { isByKey, status, now }: { isByKey: boolean; status: CredentialStatus; now: number },
): Verdict {
  const about = { order, isByKey }
  if (!isSameRequest(order, request)) return { do: 'refuse another request', ...about }
  if (isSealed(order, now)) return { do: 'say how it ended', ...about }
  // A preimage without a credential counts only together with the key of its order.
  const isShown = isByKey && provesPayment(preimage ?? '', order.payment_hash)
  if (status === 'verified' || isShown) return { do: 'redeem', ...about }
  if (status === 'mismatched') return { do: 'settle', ...about }
  return { do: status === 'none' ? 'show' : 'show, and refuse the credential', ...about }
}

/**
 * Whether a sealed order says nothing to the buyer of one URL. If it was delivered, and nothing shows that the answer
 * arrived while its capability lives, the buyer may still look for it: then no program must buy a second one by
 * itself. A use ends the repeats only if it came before their age did; who used the capability has it.
 */
function isOverAndUsed(order: OrderRow, now: number): boolean {
  const { state, delivered_at, sealed_by, expires_at } = order
  if (!isSealed(order, now)) return false
  const isUnused = state === 'settled' && delivered_at !== null && sealed_by !== 'use'
  return !(isUnused && (expires_at ?? 0) > now)
}
