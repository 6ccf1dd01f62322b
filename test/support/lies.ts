/** Services that lie in their offers, for the SDK, the command line and the tools of hosts: one table. */
import { randomBytes, randomUUID } from 'node:crypto'
import { text } from 'node:stream/consumers'
import type { PaymentQuote } from '../../src/client/index.ts'
import { decodeInvoice, type Invoice } from '../../src/protocol/bolt11.ts'
import { encodeInvoice } from '../../src/protocol/bolt11-sign.ts'
import type { After } from './folder.ts'
import { serve } from './serving.ts'

type Offer = { quote: PaymentQuote; challenge: string }

type Lie = { tell: (offer: Offer, other: Offer) => void; phrase: string }

/** How an offer may lie, and what is said of it. */
export const LIES: Record<string, Lie> = {
  'a cheap quote of a dear invoice': {
    tell: ({ quote }, { quote: { bolt11, paymentHash } }) =>
      Object.assign(quote, { bolt11, paymentHash }),
    phrase: 'price above the ceiling',
  },
  'a quote that is dearer than its invoice': {
    tell: ({ quote }) => Object.assign(quote, { amountSats: 101 }),
    phrase: 'invoice disagrees',
  },
  'a quote that is cheaper than its invoice': {
    tell: ({ quote }) => Object.assign(quote, { amountSats: 99 }),
    phrase: 'invoice disagrees',
  },
  'another payment hash': {
    tell: ({ quote }) => Object.assign(quote, { paymentHash: 'ab'.repeat(32) }),
    phrase: 'invoice disagrees',
  },
  'another network': {
    tell: ({ quote }) => Object.assign(quote, { network: 'mainnet' }),
    phrase: 'invoice disagrees',
  },
  'another expiry': {
    tell: ({ quote }) => Object.assign(quote, { expiresAt: '2026-01-01T00:00:00Z' }),
    phrase: 'invoice disagrees',
  },
  'an invoice that lets the payer choose': {
    tell: ({ quote: { paymentHash }, quote }) =>
      Object.assign(quote, { bolt11: anInvoice({ paymentHash, amountMsat: null }) }),
    phrase: 'invoice disagrees',
  },
  'no invoice': {
    tell: ({ quote }) => Object.assign(quote, { bolt11: 'lnbcrt1' }),
    phrase: 'invoice disagrees',
  },
  'another product': {
    tell: ({ quote }) => Object.assign(quote, { product: 'pulse' }),
    phrase: 'invoice disagrees',
  },
  'another plan': {
    tell: ({ quote }) => Object.assign(quote, { planId: 'standard' }),
    phrase: 'invoice disagrees',
  },
  'a network that is not ours': {
    tell: ({ quote }) =>
      Object.assign(quote, {
        bolt11: anInvoice({
          paymentHash: quote.paymentHash,
          amountMsat: 100_000,
          network: 'testnet',
        }),
        network: 'testnet',
      }),
    phrase: 'invoice disagrees',
  },
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

export function anInvoice(
  fields: Pick<Invoice, 'paymentHash' | 'amountMsat'> &
    Partial<Pick<Invoice, 'network' | 'timestamp'>>,
): string {
  return encodeInvoice(
    {
      network: 'regtest',
      timestamp: Math.floor(Date.now() / 1000),
      expirySeconds: 900,
      paymentSecret: randomBytes(32),
      description: 'a test',
      ...fields,
    },
    randomBytes(32),
  )
}

/** A service that tells one lie at a time, in each of its 402. Everything else it passes on to an honest one. */
export async function lyingService(t: After, honest: string) {
  const service = { url: '', lie: null as Lie | null }
  service.url = await serve(t, async (incoming, response) => {
    const body = await text(incoming)
    const { host, connection, 'content-length': _length, ...headers } = incoming.headers
    const ask = { method: incoming.method ?? 'GET', headers: headers as Record<string, string> }
    const sent = (more: Record<string, string>, said = body) =>
      fetch(honest + incoming.url, {
        ...ask,
        headers: { ...ask.headers, ...more },
        ...(said === '' ? {} : { body: said }),
      })
    const answer = await sent({})
    const { lie } = service
    if (answer.status !== 402 || lie === null) {
      response.writeHead(answer.status, Object.fromEntries(answer.headers))
      return response.end(Buffer.from(await answer.arrayBuffer()))
    }
    const dear = await sent({ 'idempotency-key': randomUUID() }, '{"planId":"long"}')
    const offer = await offerOf(answer)
    lie.tell(offer, await offerOf(dear))
    response.writeHead(402, { 'www-authenticate': offer.challenge })
    return response.end(JSON.stringify(offer.quote))
  })
  return service
}
