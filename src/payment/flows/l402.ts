/**
 * L402 (lightninglabs/L402, bLIP-26 draft), as a rendering of an order: the macaroon is made of the
 * order's facts each time, so a repeat shows the same one and the store keeps no macaroon.
 */
import { hex, utf8 } from '../../lib/bytes.ts'
import type { Clock } from '../../lib/clock.ts'
import { serialiseChallenge } from '../../protocol/auth-params.ts'
import { hmacSha256 } from '../../protocol/hmac.ts'
import { l402ChallengeField } from '../../protocol/l402.ts'
import { MAX_ROUTE_BYTES, mintL402, verifyL402 } from '../../protocol/l402-token.ts'
import type { Quote } from '../quote.ts'
import type { Binding, CheckedCredential, FlowOptions } from './flow.ts'
import { renderOffer, renderQuote } from './native.ts'

/**
 * A credential is valid for as long as its order's row exists, which is 30 days past the end of the quote
 * and the capability, plus a day: it still counts when the service learns of a payment late.
 */
const GRACE_MS = 31 * 24 * 60 * 60 * 1000
/** Stands for the order of a one-URL purchase: the payment hash names it, and nobody is told its id. */
const UNNAMED_ORDER = 'one-url'

export type L402Flow = ReturnType<typeof createL402Flow>

export function createL402Flow({ keys, publicUrl, clock }: FlowOptions & { clock: Clock }) {
  return {
    /** Whether a request target is short enough to be bound. */
    canBind: (target: string): boolean => utf8(target).length <= MAX_ROUTE_BYTES,

    /** A challenge that nothing can meet: it refuses a credential for an order that is already paid. */
    bare: (): string => serialiseChallenge('L402', { realm: new URL(publicUrl()).hostname }),

    /** The challenge, with the error phrase that explains it. */
    challenge(
      quote: Quote,
      { product, method, target, bodySha256, isOneUrl }: Binding,
      error: 'payment required' | 'invalid L402 credential',
    ) {
      const [key] = keys
      const macaroon = mintL402(
        key,
        {
          paymentHash: quote.paymentHash,
          tokenId: hex(hmacSha256(key, utf8(`token ${quote.orderId}`))),
        },
        {
          service: product,
          expiresAt: quote.expiresAt + quote.durationSeconds * 1000 + GRACE_MS,
          aud: publicUrl(),
          order: isOneUrl ? UNNAMED_ORDER : quote.orderId,
          plan: quote.planId,
          method,
          route: target,
          bodySha256,
        },
      )
      return {
        field: l402ChallengeField({ macaroon, invoice: quote.bolt11 }),
        body: {
          error,
          scheme: 'L402',
          macaroon,
          invoice: quote.bolt11,
          ...(isOneUrl ? renderOffer(quote) : renderQuote(quote)),
        },
      }
    },

    read(
      fieldLines: readonly string[],
      { product, method, target, bodySha256 }: Binding,
    ): CheckedCredential<'invalid L402 credential'> {
      const verdict = verifyL402(fieldLines, keys, {
        now: clock.now(),
        service: product,
        // The key shows that we minted the token, and our store has the order that it names.
        method,
        route: target,
        bodySha256,
      })
      switch (verdict.outcome) {
        case 'none':
          return { kind: 'none' }
        case 'violated':
          return { kind: 'mismatched', paymentHash: verdict.paymentHash }
        case 'invalid': {
          const { paymentHash } = verdict
          return { kind: 'invalid', reason: 'invalid L402 credential', paymentHash }
        }
        case 'ok':
          // The order and the plan that it names are those of the order with its payment hash.
          return { kind: 'verified', paymentHash: verdict.paymentHash, challengeId: '' }
      }
    },
  }
}
