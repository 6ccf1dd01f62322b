/** A request to a project that sells `POST /render/*` by GATE, and the challenge that it gets. */
import type { PaymentChallenge } from '../../src/protocol/payment-auth.ts'
import { paymentChallenges } from './payer.ts'

export const BODY = '{"size": 2}'
export const PATH = '/render/cat?size=2'

/** The one Payment challenge of a `WWW-Authenticate` field. */
export function challengeOf(field: string | null | undefined): PaymentChallenge {
  const [challenge] = paymentChallenges([field ?? ''])
  if (!challenge) throw new Error('no Payment challenge')
  return challenge
}
