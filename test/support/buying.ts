/**
 * The HTTP requests of buyers: purchase, quote, pay, poll. A header field may have any number of lines.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { CatchCapability, PaymentQuote } from '../../src/client/index.ts'
import type { PaymentChallenge } from '../../src/protocol/payment-auth.ts'
import { phraseIn } from './answer.ts'
import { send as sendHttp } from './http.ts'
import {
  l402Authorization,
  l402Challenges,
  paymentAuthorization,
  paymentChallenges,
} from './payer.ts'
import type { TestServer } from './server.ts'
import { query, type Stored } from './store.ts'

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

export const NOT_FOUND = { status: 404, text: '{"error":"order not found"}' }
export const DELIVERED = { status: 404, text: '{"error":"already delivered"}' }
export const EXPIRED = { status: 404, text: '{"error":"order expired"}' }

export const PURCHASE = '/api/payments/catch'
export const SPARK = '{"planId":"spark"}'

export type Ask = {
  /** Default: a new key. Null sends no key. */
  key?: string | null
  method?: string
  target?: string
  body?: string | Uint8Array
  /** The value of X-Payment-Protocol. */
  protocol?: string
  authorization?: string | string[]
  /** The address that a trusted proxy reports. */
  from?: string
  headers?: Record<string, string | string[]>
}

/** An answer. `deepEqual` compares its status and text. */
export type Answer = {
  status: number
  text: string
  /** The lines of a field, in order. */
  lines(name: string): string[]
  /** The only line of a field, or null. */
  header(name: string): string | null
  /** The whole head and body, for tests that something is not in it. */
  whole: string
}

/** A quote, with its key and the answer that contained it. */
export type Order = PaymentQuote & { key: string; answer: Answer }

export const idempotencyKey = (key: string) => ({ 'idempotency-key': key })

/** Sends one purchase request. Default: for the smallest inbox. */
export function purchase(server: { url: string }, ask: Ask = {}): Promise<Answer> {
  const { key = randomUUID(), target = PURCHASE, body = SPARK, method = 'POST' } = ask
  return send(server.url + target, {
    method,
    body: method === 'POST' ? body : '',
    headers: {
      'content-type': 'application/json',
      ...(key === null ? {} : idempotencyKey(key)),
      ...(ask.protocol === undefined ? {} : { 'x-payment-protocol': ask.protocol }),
      ...(ask.authorization === undefined ? {} : { authorization: ask.authorization }),
      ...(ask.from === undefined ? {} : { 'x-forwarded-for': ask.from }),
      ...ask.headers,
    },
  })
}

/** Sends a purchase request, and asserts that its answer is a quote. */
export async function openOrder(
  server: { url: string },
  { key = randomUUID(), ...ask }: Ask & { key?: string } = {},
): Promise<Order> {
  const answer = await purchase(server, { ...ask, key })
  assert.equal(answer.status, 402, answer.text)
  return { ...JSON.parse(answer.text), key, answer }
}

/** Pays, and waits until the server logs that the order is settled. */
export async function payAndSettle(server: TestServer, order: PaymentQuote): Promise<void> {
  const settled = settlement(server, order)
  await server.pay(order.bolt11)
  await settled
}

/** Resolves when the server logs that it has settled this order. Default: any order. */
export function settlement({ logged }: TestServer, order?: { paymentHash: string }): Promise<void> {
  return new Promise((resolve) => {
    const push = logged.push.bind(logged)
    logged.push = (...lines) => {
      for (const line of lines) {
        const { event, paymentHash } = JSON.parse(line)
        const isIts = order === undefined || paymentHash === order.paymentHash
        if (event === 'order.settled' && isIts) resolve()
      }
      return push(...lines)
    }
  })
}

/** An order that is paid and settled, but not delivered. */
export async function paidOrder(
  server: TestServer,
  ask: Ask & { key?: string } = {},
): Promise<Order> {
  const order = await openOrder(server, ask)
  await payAndSettle(server, order)
  return order
}

/** An order that is paid, settled and delivered. */
export async function deliveredOrder(
  server: TestServer,
): Promise<Order & { inbox: CatchCapability; text: string }> {
  const order = await paidOrder(server)
  const { status, text } = await poll(server, order.orderId)
  assert.equal(status, 200, text)
  return { ...order, text, inbox: JSON.parse(text).resource }
}

export const poll = (
  server: { url: string },
  orderId: string,
  headers: Record<string, string> = {},
): Promise<Answer> => send(`${server.url}/api/payments/${orderId}`, { headers })

export const pollExtension = (
  server: { url: string },
  orderId: string,
  headers: Record<string, string> = {},
): Promise<Answer> => send(`${server.url}/api/extensions/${orderId}`, { headers })

/** Sends one request to the simulator's wallet. */
export function simulatorPay({ url }: { url: string }, body: unknown): Promise<Answer> {
  return send(`${url}/simulator/pay`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

/** The quote in a 402 of any flow. */
export function quoteOf({ status, text }: Answer): PaymentQuote {
  if (status !== 402 && status !== 401) throw new Error(`no quote: ${status} ${text}`)
  return JSON.parse(text)
}

/** The one Payment challenge of an answer. */
export function paymentChallengeOf(answer: Answer): PaymentChallenge {
  const [challenge] = paymentChallenges(answer.lines('www-authenticate'))
  if (!challenge) throw new Error(`no Payment challenge: ${answer.whole}`)
  return challenge
}

export function paymentCredential(answer: Answer, preimage: string): string {
  return paymentAuthorization({
    challenge: paymentChallengeOf(answer),
    payload: { preimage },
  })
}

/** The macaroon of an answer, in base64. */
export function macaroonOf(answer: Answer): string {
  const [challenge] = l402Challenges(answer.lines('www-authenticate'))
  if (!challenge) throw new Error(`no L402 challenge: ${answer.whole}`)
  return challenge.macaroon
}

export function l402Credential(answer: Answer, preimage: string): string {
  return l402Authorization({ macaroon: macaroonOf(answer), preimage })
}

export type Books = { orders: number; invoices: number; settled: number; inboxes: number }

/** Counts what is in the store, for tests that a request did not do too much. */
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

export async function assertNothingHappened(server: Stored): Promise<void> {
  assert.deepEqual(await books(server), { orders: 0, invoices: 0, settled: 0, inboxes: 0 })
}

/** The preimage of an unpaid invoice, which otherwise only the node knows. */
export async function preimageOf(server: Stored, paymentHash: string): Promise<string> {
  const [row] = await query(
    server,
    'select preimage from simulator_invoice where payment_hash = $1',
    paymentHash,
  )
  return String(row?.preimage)
}

/** Sends any request of a buyer. */
export async function send(url: string, ask: Parameters<typeof sendHttp>[1]): Promise<Answer> {
  const { status, lines, rawHeaders, body } = await sendHttp(url, ask)
  const whole = body.toString('utf8')
  const linesOf = (name: string): string[] => lines[name] ?? []
  // Not enumerable, so that `deepEqual` ignores these.
  return Object.defineProperties({ status, text: phraseIn(status, whole) } as Answer, {
    lines: { value: linesOf },
    header: { value: (name: string) => linesOf(name)[0] ?? null },
    whole: { value: `${rawHeaders.join('\n')}\n\n${whole}` },
  })
}
