/** A request to a project that sells `POST /render/*` by GATE, and the challenge that it gets. */
import { parseChallenges } from '../../src/protocol/auth-params.ts'
import { type PaymentChallenge, paymentChallenges } from '../../src/protocol/payment-auth.ts'

export const BODY = '{"size": 2}'
export const PATH = '/render/cat?size=2'

/** The one Payment challenge of a `WWW-Authenticate` field. */
export function challengeOf(field: string | null | undefined): PaymentChallenge {
  const [challenge] = paymentChallenges(parseChallenges([field ?? '']) ?? [])
  if (!challenge) throw new Error('no Payment challenge')
  return challenge
}
