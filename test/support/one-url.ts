/** Purchases of one URL, as a program without a word about us sends them. */
import assert from 'node:assert/strict'
import { type Answer, l402Credential, paymentCredential, preimageOf, send } from './buying.ts'
import type { TestServer } from './server.ts'
import { query } from './store.ts'

export const BUY = '/api/buy/catch/spark'

export type Look = {
  method?: 'GET' | 'HEAD' | 'POST' | 'PUT'
  target?: string
  body?: string | Buffer
  authorization?: string | string[] | undefined
  headers?: Record<string, string>
}

/** Sends one request to the address of a purchase. */
export function look(server: { url: string }, ask: Look = {}): Promise<Answer> {
  const { method = 'GET', target = BUY, body = '', authorization, headers = {} } = ask
  return send(server.url + target, {
    method,
    body,
    headers: { ...headers, ...(authorization === undefined ? {} : { authorization }) },
  })
}

/** The credential of each scheme that answers a 402. */
export const SCHEMES = { Payment: paymentCredential, L402: l402Credential }
export type Scheme = keyof typeof SCHEMES
export const FLOWS = Object.keys(SCHEMES) as Scheme[]

export type Opened = Awaited<ReturnType<typeof opened>>

/** Opens an order by a look at its address. */
export async function opened(server: TestServer, scheme: Scheme = 'Payment', ask: Look = {}) {
  const challenge = await look(server, ask)
  const { paymentHash, invoice } = offerOf(challenge)
  const preimage = await preimageOf(server, paymentHash)
  return {
    challenge,
    paymentHash,
    preimage,
    bolt11: invoice,
    /** Right once the invoice is paid. */
    authorization: SCHEMES[scheme](challenge, preimage),
    /** The same with a preimage that is wrong. */
    wrong: SCHEMES[scheme](challenge, '00'.repeat(32)),
  }
}

/** Opens an order and pays its invoice. */
export async function paid(server: TestServer, scheme: Scheme = 'Payment', ask: Look = {}) {
  const order = await opened(server, scheme, ask)
  await server.pay(order.bolt11)
  return order
}

type Offer = {
  paymentHash: string
  invoice: string
  amountSats: number
  product: string
  planId: string
}

/** What a 402 with a body asks for. */
export function offerOf({ status, text }: Answer): Offer {
  assert.equal(status, 402, text)
  return JSON.parse(text)
}

/** Asserts that an answer is a challenge of another order than this one. */
export function assertFresh(answer: Answer, { paymentHash }: Opened, note?: string): void {
  assert.equal(answer.status, 402, `${note}: ${answer.text}`)
  assert.notEqual(offerOf(answer).paymentHash, paymentHash, note)
}

/** The row of an order. */
export async function rowOf(server: TestServer, { paymentHash }: { paymentHash: string }) {
  const [row] = await query(
    server,
    'select * from purchase_order where payment_hash = $1',
    paymentHash,
  )
  assert.ok(row, 'the order')
  return row
}
