/** Buys and uses all three products with the types of openapi-typescript, through openapi-fetch. */
import createClient from 'openapi-fetch'
import type { components, paths } from './schema'

declare const process: { argv: string[] }

const { GET, POST } = createClient<paths>({ baseUrl: process.argv[2] ?? '' })

type Refusal =
  | components['schemas']['PaymentQuote']
  | components['schemas']['L402Challenge']
  | components['schemas']['PaymentAuthChallenge']
  | components['schemas']['Error']

const key = () => ({ 'idempotency-key': crypto.randomUUID() })
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

async function paid(quote: Refusal | undefined) {
  if (!quote || !('bolt11' in quote)) throw new Error('no quote')
  if ('macaroon' in quote || 'challenge' in quote) throw new Error('a challenge')
  await POST('/simulator/pay', { body: { bolt11: quote.bolt11 } })
  const path = { orderId: quote.orderId }
  const { data } = await GET('/api/payments/{orderId}', { params: { path } })
  if (!data) throw new Error('not paid')
  return data.resource
}

async function main(): Promise<void> {
  const buying = { params: { header: key() }, body: { planId: 'spark' as const } }
  const inbox = await paid((await POST('/api/payments/catch', buying)).error)
  if (inbox.product !== 'catch') throw new Error('no inbox')
  const path = { publicId: inbox.publicId }
  await POST('/c/{publicId}', { params: { path }, body: { type: 'paid' } })
  const { data: page } = await GET('/api/catch/{publicId}/events', {
    params: { path },
    ...bearer(inbox.ownerToken),
  })
  if (page?.events[0]?.body !== '{"type":"paid"}') throw new Error('no event')

  const bought = await POST('/api/payments/whisper', {
    params: { header: { ...key(), 'x-whisper-plan': 'spark' } },
    headers: { 'content-type': 'application/octet-stream' },
    body: 'forty bytes, as if they were encrypted..',
    bodySerializer: (body) => body,
  })
  const whisper = await paid(bought.error)
  if (whisper.product !== 'whisper') throw new Error('no whisper')
  const { data: read } = await GET('/w/{publicId}', {
    params: { path: { publicId: whisper.publicId } },
    parseAs: 'text',
    ...bearer(whisper.readToken),
  })
  if (read?.length !== 40) throw new Error('another ciphertext')

  const again = { params: { header: key() }, body: { planId: 'spark' as const } }
  const monitor = await paid((await POST('/api/payments/pulse', again)).error)
  if (monitor.product !== 'pulse') throw new Error('no monitor')
  const params = { path: { publicId: monitor.publicId } }
  await POST('/p/{publicId}', { params, ...bearer(monitor.pingToken) })
  const { data } = await GET('/api/pulse/{publicId}', { params, ...bearer(monitor.ownerToken) })
  if (data?.state !== 'operational') throw new Error('no ping')
}

void main()
