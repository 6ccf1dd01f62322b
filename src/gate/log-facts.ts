/** The fields of an intent in log events. */
import type { IntentRow } from './intent-store.ts'

export const intentFacts = (
  intent: Pick<IntentRow, 'intent_id' | 'payment_hash' | 'project_id'>,
) => ({
  intentId: intent.intent_id,
  paymentHash: intent.payment_hash,
  projectId: intent.project_id,
})
