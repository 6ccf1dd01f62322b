/** Buys and reads a WHISPER over plain HTTP. The test controls every header and byte. */
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { MayflyError, type WhisperCapability } from '../../src/client/index.ts'
import { phraseIn } from './answer.ts'
import { type Fields, send as sendHttp } from './http.ts'
import type { TestServer } from './server.ts'
import { query, type Stored } from './store.ts'
import { until } from './until.ts'

export type Shop = { url: string; pay(bolt11: string): Promise<unknown> }

export type Answer = { status: number; headers: IncomingHttpHeaders; body: Buffer; text: string }

export type Purchase = {
  key?: string | null
  plan?: string | null
  body?: Uint8Array
  readLimit?: string | number
  revealAt?: string
  /** The client's address, if the server trusts the test as a proxy. */
  from?: string
  /** Sent unchanged. A field without a value removes a default. */
  headers?: Fields
}

export type Quote = { orderId: string; bolt11: string; paymentHash: string; amountSats: number }

export const A_BODY = randomBytes(64)
export const REUSED = {
  status: 400,
  text: '{"error":"idempotency key reused with a different request"}',
}

/** An answer without its headers. */
export const short = ({ status, text }: Answer) => ({ status, text })

/** A refusal with this phrase. */
export const refusal = (error: string) => ({ status: 400, text: JSON.stringify({ error }) })

/** A time this long from now on the server's clock, in the API's format. */
export const iso = (server: TestServer, fromNow: number) =>
  new Date(server.now() + fromNow).toISOString()

/** `POST /api/payments/whisper`. By default it buys a spark for `A_BODY`. */
export function purchaseWhisper(shop: { url: string }, ask: Purchase = {}): Promise<Answer> {
  const { key = randomUUID(), plan = 'spark', body = A_BODY, readLimit, revealAt, from } = ask
  const headers: Fields = {
    'content-type': 'application/octet-stream',
    'content-length': String(body.length),
    'idempotency-key': key,
    'x-whisper-plan': plan,
    'x-whisper-read-limit': readLimit?.toString(),
    'x-whisper-reveal-at': revealAt,
    'x-forwarded-for': from,
    ...ask.headers,
  }
  return send(`${shop.url}/api/payments/whisper`, { method: 'POST', headers, body })
}

/** Sends a purchase request, and asserts that its answer is a quote. */
export async function openWhisperOrder(shop: { url: string }, ask: Purchase = {}): Promise<Quote> {
  const answer = await purchaseWhisper(shop, ask)
  if (answer.status !== 402) throw new Error(`not quoted: ${answer.status} ${answer.text}`)
  return JSON.parse(answer.text) as Quote
}

/** Buys a whisper: pays the order and collects it. */
export async function aWhisper(shop: Shop, ask: Purchase = {}): Promise<WhisperCapability> {
  const again = { ...ask, key: ask.key ?? randomUUID() }
  const quote = await openWhisperOrder(shop, again)
  await shop.pay(quote.bolt11)
  return delivered(shop, quote, again.key)
}

/** The capability of a paid order. Repeats are allowed until it is used. */
export async function delivered(
  shop: { url: string },
  { orderId }: Quote,
  key?: string,
): Promise<WhisperCapability> {
  // The node's stream settles the order in a moment. The order's own look-up is limited to one per second.
  const { status, text } = await until('the order settles', async () => {
    const answer = await send(`${shop.url}/api/payments/${orderId}`, {
      headers: { 'idempotency-key': key },
    })
    return answer.status !== 402 && answer
  })
  if (status !== 200) throw new Error(`not delivered: ${status} ${text}`)
  return (JSON.parse(text) as { resource: WhisperCapability }).resource
}

/** `GET /w/{publicId}` with its token. Null sends no token. */
export function read(
  shop: { url: string },
  {
    publicId,
    readToken,
    method = 'GET',
  }: { publicId: string; readToken: string | null; method?: string },
  headers: Record<string, string | string[]> = {},
): Promise<Answer> {
  return send(`${shop.url}/w/${publicId}`, {
    method,
    headers: { authorization: readToken && `Bearer ${readToken}`, ...headers },
  })
}

/** Sends any request. */
export async function send(url: string, ask: Parameters<typeof sendHttp>[1]): Promise<Answer> {
  const { status, headers, body } = await sendHttp(url, ask)
  return { status, headers, body, text: phraseIn(status, body.toString('utf8')) }
}

/** Asserts the refusal for a full budget, with a time to retry. */
export function assertNoRoom(answer: Answer, message?: string): void {
  assert.deepEqual(short(answer), { status: 429, text: '{"error":"rate limited"}' }, message)
  assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/)
}

/** A predicate for errors of the SDK with this phrase and status. */
export function mayflyError(phrase: string, status: number) {
  return (error: unknown) =>
    error instanceof MayflyError && error.phrase === phrase && error.status === status
}

/** The rows in the store. */
export async function stored(server: Stored) {
  const count = async (table: string): Promise<number> =>
    Number((await query(server, `select count(*) as n from ${table}`))[0]?.n)
  const unpaid = await query(
    server,
    `select client_network, sum(byte_count) as bytes from whisper_reservation
      where byte_count <> 0 group by client_network order by client_network`,
  )
  return {
    orders: await count('purchase_order'),
    invoices: await count('simulator_invoice'),
    ciphertexts: await count('whisper_ciphertext'),
    /** Of each network. */
    unpaid: unpaid.map(({ client_network, bytes }) => [client_network, Number(bytes)]),
  }
}
