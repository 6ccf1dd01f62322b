/** What a payer does with a 402: it reads the challenges, and writes the credential of the one that it paid. */
import type { L402Challenge } from '../../src/protocol/l402.ts'
import type { PaymentChallenge, PaymentCredential } from '../../src/protocol/payment-auth.ts'

type Challenge = { scheme: string; params: Map<string, string> }

/** A parameter, with the scheme in front of it where a challenge begins. Ours need no escapes. */
const PARAM = /(?:([A-Za-z0-9]+) +)?([a-z0-9_]+)="([^"]*)"/g

/** The challenges of all `WWW-Authenticate` field lines, which proxies join. */
function challengesIn(fieldLines: readonly string[]): Challenge[] {
  const found: Challenge[] = []
  for (const [, scheme, name = '', value = ''] of fieldLines.join(', ').matchAll(PARAM)) {
    if (scheme) found.push({ scheme, params: new Map() })
    found.at(-1)?.params.set(name, value)
  }
  return found
}

/** Those of the Payment scheme that can be paid. */
export const paymentChallenges = (fieldLines: readonly string[]): PaymentChallenge[] =>
  challengesIn(fieldLines)
    .filter(({ scheme, params }) => scheme === 'Payment' && params.has('id'))
    .map(({ params }) => Object.fromEntries(params) as PaymentChallenge)

/** The one Payment challenge of a `WWW-Authenticate` field. */
export function paymentChallengeIn(field: string | null | undefined): PaymentChallenge {
  const [challenge] = paymentChallenges([field ?? ''])
  if (!challenge) throw new Error('no Payment challenge')
  return challenge
}

/** Those of L402 that can be paid. */
export const l402Challenges = (fieldLines: readonly string[]): L402Challenge[] =>
  challengesIn(fieldLines)
    .filter(({ scheme, params }) => scheme === 'L402' && params.has('invoice'))
    .map(({ params }) => Object.fromEntries(params) as L402Challenge)

/** The `Authorization` field value of a Payment credential. */
export const paymentAuthorization = (credential: PaymentCredential): string =>
  `Payment ${Buffer.from(JSON.stringify(credential)).toString('base64url')}`

/** The `Authorization` field value of an L402 credential. */
export const l402Authorization = (credential: { macaroon: string; preimage: string }): string =>
  `L402 ${credential.macaroon}:${credential.preimage}`

/** Pays an invoice through the simulator of a service. Returns the preimage. */
export async function payAt(url: string, bolt11: string): Promise<string> {
  const response = await fetch(`${url}/simulator/pay`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ bolt11 }),
  })
  if (response.status !== 200) throw new Error(`the simulator did not pay: ${response.status}`)
  return ((await response.json()) as { preimage: string }).preimage
}
