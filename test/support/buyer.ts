/** A buyer at the level of HTTP: raw requests, with as many lines of a field as a test likes. */
import { randomUUID } from 'node:crypto'
import { type IncomingMessage, request } from 'node:http'
import type { PaymentQuote } from '../../src/client/index.ts'
import { parseChallenges } from '../../src/protocol/auth-params.ts'
import { l402Challenges, serialiseL402Credential } from '../../src/protocol/l402.ts'
import {
  type PaymentChallenge,
  paymentChallenges,
  serialisePaymentCredential,
} from '../../src/protocol/payment-auth.ts'
import { query, type Stored } from './store.ts'

export const PURCHASE = '/api/payments/catch'
export const SPARK = '{"planId":"spark"}'

export type Ask = {
  /** Default: a fresh one. */
  key?: string
  method?: string
  target?: string
  body?: string
  /** X-Payment-Protocol. */
  protocol?: string
  authorization?: string | string[]
  /** The address that a trusted proxy reports. */
  from?: string
  headers?: Record<string, string | string[]>
}

export type Answer = {
  status: number
  /** The lines of a field, in order. */
  lines(name: string): string[]
  /** The whole head and body, to look for what must not be there. */
  whole: string
  text: string
}

/** A purchase of the smallest inbox, but for what the ask says. */
export function buy(server: { url: string }, ask: Ask): Promise<Answer> {
  const { key = randomUUID(), target = PURCHASE, body = SPARK, method = 'POST' } = ask
  return send(server.url + target, {
    method,
    body: method === 'POST' ? body : '',
    headers: {
      'content-type': 'application/json',
      'idempotency-key': key,
      ...(ask.protocol === undefined ? {} : { 'x-payment-protocol': ask.protocol }),
      ...(ask.authorization === undefined ? {} : { authorization: ask.authorization }),
      ...(ask.from === undefined ? {} : { 'x-forwarded-for': ask.from }),
      ...ask.headers,
    },
  })
}

export function poll(server: { url: string }, orderId: string, key?: string): Promise<Answer> {
  const headers = key === undefined ? {} : { 'idempotency-key': key }
  return send(`${server.url}/api/payments/${orderId}`, { method: 'GET', body: '', headers })
}

/** The quote that every 402 carries, in whatever flow. */
export function quoteOf({ status, text }: Answer): PaymentQuote {
  if (status !== 402 && status !== 401) throw new Error(`no quote: ${status} ${text}`)
  return JSON.parse(text)
}

/** The one Payment challenge of an answer. */
export function paymentChallengeOf(answer: Answer): PaymentChallenge {
  const [challenge] = paymentChallenges(parseChallenges(answer.lines('www-authenticate')) ?? [])
  if (!challenge) throw new Error(`no Payment challenge: ${answer.whole}`)
  return challenge
}

export function paymentCredential(answer: Answer, preimage: string): string {
  return serialisePaymentCredential({
    challenge: paymentChallengeOf(answer),
    payload: { preimage },
  })
}

/** The macaroon of an answer, in base64. */
export function macaroonOf(answer: Answer): string {
  const [challenge] = l402Challenges(parseChallenges(answer.lines('www-authenticate')) ?? [])
  if (!challenge) throw new Error(`no L402 challenge: ${answer.whole}`)
  return challenge.macaroon
}

export function l402Credential(answer: Answer, preimage: string): string {
  return serialiseL402Credential({ macaroon: macaroonOf(answer), preimage })
}

export type Books = { orders: number; invoices: number; settled: number; inboxes: number }

/** What there is in the store, which says whether a request did more than it may. */
export async function books(server: Stored): Promise<Books> {
  const [row] = await query(
    server,
    `select (select count(*) from purchase_order) as orders,
       (select count(*) from simulator_invoice) as invoices,
       (select count(*) from purchase_order where state = 'settled') as settled,
       (select count(*) from catch_inbox) as inboxes`,
  )
  const { orders, invoices, settled, inboxes } = row as Books
  return { orders, invoices, settled, inboxes }
}

/** The preimage of an invoice that nobody has paid yet, which only its node can know. */
export async function preimageOf(server: Stored, paymentHash: string): Promise<string> {
  const [row] = await query(
    server,
    'select preimage from simulator_invoice where payment_hash = $1',
    paymentHash,
  )
  return String(row?.preimage)
}

export function send(
  url: string,
  ask: { method: string; headers: Record<string, string | string[]>; body: string },
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: ask.method, headers: ask.headers }, (response) => {
      answerOf(response).then(resolve, reject)
    })
    sent.on('error', reject)
    sent.end(ask.body)
  })
}

async function answerOf(response: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString('utf8')
  return {
    status: response.statusCode ?? 0,
    lines: (name) => response.headersDistinct[name] ?? [],
    whole: `${response.rawHeaders.join('\n')}\n\n${text}`,
    text,
  }
}
