/** Services that lie in their offers, for the SDK, the command line and the tools of hosts: one table. */
import { randomUUID } from 'node:crypto'
import type { PaymentQuote } from '../../src/client/index.ts'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import type { After } from './folder.ts'
import { anInvoice } from './invoice.ts'
import { answerWith, passOn, serve } from './serving.ts'

type Offer = { quote: PaymentQuote; challenge: string }

type Lie = { tell: (offer: Offer, other: Offer) => void; phrase: string }

const disagreeing = (
  said: Record<string, unknown> | ((quote: PaymentQuote) => Record<string, unknown>),
): Lie => ({
  tell: ({ quote }) => Object.assign(quote, typeof said === 'function' ? said(quote) : said),
  phrase: 'invoice disagrees',
})

/** How an offer may lie, and what is said of it. */
export const LIES: Record<string, Lie> = {
  'a cheap quote of a dear invoice': {
    tell: ({ quote }, { quote: { bolt11, paymentHash } }) =>
      Object.assign(quote, { bolt11, paymentHash }),
    phrase: 'price above the ceiling',
  },
  'a quote that is dearer than its invoice': disagreeing({ amountSats: 101 }),
  'a quote that is cheaper than its invoice': disagreeing({ amountSats: 99 }),
  'another payment hash': disagreeing({ paymentHash: 'ab'.repeat(32) }),
  'another network': disagreeing({ network: 'mainnet' }),
  'another expiry': disagreeing({ expiresAt: '2026-01-01T00:00:00Z' }),
  'an invoice that lets the payer choose': disagreeing(({ paymentHash }) => ({
    bolt11: anInvoice({ paymentHash, amountMsat: null }),
  })),
  'no invoice': disagreeing({ bolt11: 'lnbcrt1' }),
  'another product': disagreeing({ product: 'pulse' }),
  'another plan': disagreeing({ planId: 'standard' }),
  'a network that is not ours': disagreeing(({ paymentHash }) => ({
    bolt11: anInvoice({ paymentHash, amountMsat: 100_000, network: 'testnet' }),
    network: 'testnet',
  })),
  'an invoice that has expired': {
    tell: ({ quote }) => {
      const timestamp = Math.floor(Date.now() / 1000) - 3600
      const bolt11 = anInvoice({ paymentHash: quote.paymentHash, amountMsat: 100_000, timestamp })
      const { expiresAt } = decodeInvoice(bolt11)
      Object.assign(quote, { bolt11, expiresAt: new Date(expiresAt).toISOString() })
    },
    phrase: 'invoice expired',
  },
  'no quote': {
    tell: ({ quote }) => Object.assign(quote, { amountSats: '100' }),
    phrase: 'unexpected answer',
  },
}

async function offerOf(answer: Response): Promise<Offer> {
  const challenge = answer.headers.get('www-authenticate') ?? ''
  return { quote: (await answer.json()) as PaymentQuote, challenge }
}

/** A service that tells one lie at a time, in each of its 402. Everything else it passes on to an honest one. */
export async function lyingService(t: After, honest: string) {
  const service = { url: '', lie: null as Lie | null }
  service.url = await serve(t, async (incoming, response) => {
    const passed = await passOn(honest, incoming)
    const { lie } = service
    if (passed.status !== 402 || lie === null) return answerWith(response, passed)
    const headers = { 'content-type': 'application/json', 'idempotency-key': randomUUID() }
    const dear = { method: 'POST', headers, body: '{"planId":"long"}' }
    const offer = await offerOf(new Response(new Uint8Array(passed.answered), passed))
    lie.tell(offer, await offerOf(await fetch(honest + incoming.url, dear)))
    response.writeHead(402, { 'www-authenticate': offer.challenge })
    return response.end(JSON.stringify(offer.quote))
  })
  return service
}
