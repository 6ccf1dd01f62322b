/** Verifies receipts with the service's keys. */
import { fetchGateKeys, verifyFor } from '../client/gate.ts'
import type { Http } from '../client/http.ts'
import { type GateReceipt, verifyReceipt } from '../protocol/gate-receipt.ts'
import { createKeyRing } from './keys.ts'
import type { Visit } from './visit.ts'

/**
 * The receipt, if it is valid for this request. `isExpired` after its five minutes.
 * @throws if it may be signed by a key that is newer than those at hand.
 */
export type ReadReceipt = (
  text: string,
  visit: Visit,
) => Promise<{ receipt: GateReceipt; isExpired: boolean } | null>

export function createReceiptReader(deps: {
  http: Http
  projectId: string
  issuer: string | null
  now: () => number
}): ReadReceipt {
  const { http, projectId, issuer, now } = deps
  const ring = createKeyRing(() => fetchGateKeys(http), now)

  return async (text, visit) => {
    const facts = { projectId, issuer, request: visit, now: now() }
    const begun = ring.begun()
    let keys = await ring.keys()
    let verdict = await verifyFor(text, keys, facts)
    if (verdict.outcome === 'unknown key') {
      keys = await ring.keysAfter(begun)
      verdict = await verifyFor(text, keys, facts)
    }
    if (verdict.outcome === 'ok') return { receipt: verdict.receipt, isExpired: false }
    if (verdict.outcome !== 'refused' || verdict.reason !== 'expired') return null
    const record = await verifyReceipt(text, keys)
    return record.outcome === 'ok' ? { receipt: record.receipt, isExpired: true } : null
  }
}
