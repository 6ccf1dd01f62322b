/** The two flows of wallets, and orders in one of them. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import {
  type Answer,
  type Ask,
  l402Credential,
  paymentCredential,
  preimageOf,
  purchase,
  quoteOf,
} from './buying.ts'
import { type Refusal, statusAndPhrase } from './http.ts'
import { startServer, type TestServer } from './server.ts'

export type WalletFlow = {
  /** The value of X-Payment-Protocol. */
  protocol: 'payment' | 'l402'
  /** The `Authorization` that answers the challenge of a 402. */
  credential(challenge: Answer, preimage: string): string
}

export const PAYMENT: WalletFlow = { protocol: 'payment', credential: paymentCredential }
export const L402: WalletFlow = { protocol: 'l402', credential: l402Credential }

/** A fixed address, so that challenges stay valid after a restart on another port. */
export const BASE_URL = 'http://localhost:8402'
export const MINUTE = 60_000
export const HOUR = 60 * MINUTE

export function startShop(
  t: Parameters<typeof startServer>[0],
  environment: Record<string, string> = {},
): Promise<TestServer> {
  return startServer(t, { MAYFLY_BASE_URL: BASE_URL, ...environment })
}

/** Opens an order. Its credential is valid once the invoice is paid. */
export async function openOrderVia(server: TestServer, flow: WalletFlow, ask: Ask = {}) {
  const key = ask.key ?? randomUUID()
  const challenge = await purchase(server, { ...ask, key, protocol: flow.protocol })
  const { paymentHash, bolt11, orderId } = quoteOf(challenge)
  const preimage = await preimageOf(server, paymentHash)
  const authorization = flow.credential(challenge, preimage)
  const paid: Ask = { ...ask, key, authorization }
  return { key, challenge, paymentHash, bolt11, orderId, preimage, authorization, ask: paid }
}

/** Opens an order and pays its invoice. */
export async function paidOrderVia(server: TestServer, flow: WalletFlow, ask: Ask = {}) {
  const order = await openOrderVia(server, flow, ask)
  await server.pay(order.bolt11)
  return order
}

/** Asserts that the answer is this refusal, without a challenge or receipt. */
export function assertError(answer: Answer, refusal: Refusal, note: string = refusal): void {
  const [status, error] = statusAndPhrase(refusal)
  assert.deepEqual([answer.status, answer.text], [status, JSON.stringify({ error })], note)
  assert.deepEqual(answer.lines('www-authenticate'), [], note)
  assert.deepEqual(answer.lines('payment-receipt'), [], note)
  assert.deepEqual(answer.lines('cache-control'), ['no-store'], note)
}

/** Asserts the 401 for a paid order: a scheme and a realm, but nothing to pay. */
export function assertBareRefusal(answer: Answer, { protocol }: WalletFlow, note?: string): void {
  const [scheme, error] =
    protocol === 'l402'
      ? ['L402', 'invalid L402 credential']
      : ['Payment', 'invalid payment credential']
  assert.equal(answer.status, 401, note)
  const { error: phrase, field: _field, expected: _expected, ...more } = JSON.parse(answer.text)
  assert.deepEqual([phrase, more], [error, {}], note)
  assert.deepEqual(answer.lines('www-authenticate'), [`${scheme} realm="localhost"`], note)
  assert.deepEqual(answer.lines('content-type'), ['application/json; charset=utf-8'], note)
  assert.deepEqual(answer.lines('cache-control'), ['no-store'], note)
}

export function capabilityOf({ status, text }: Answer): { publicId: string; ownerToken: string } {
  assert.equal(status, 200, text)
  const { settled, resource } = JSON.parse(text)
  assert.equal(settled, true)
  assert.equal(resource.product, 'catch')
  return resource
}

/** Uses a token for the first time, which seals the order. */
export async function use(server: TestServer, delivered: Answer): Promise<void> {
  const { publicId, ownerToken } = capabilityOf(delivered)
  const used = await fetch(`${server.url}/api/catch/${publicId}`, {
    headers: { authorization: `Bearer ${ownerToken}` },
  })
  assert.equal(used.status, 200)
}

/** Asserts that an answer is a 402 with a challenge of this flow, for this order. */
export function askedBy(flow: WalletFlow) {
  return (answer: Answer, paymentHash: string, note?: string): void => {
    assert.equal(answer.status, 402, `${note}: ${answer.text}`)
    assert.equal(quoteOf(answer).paymentHash, paymentHash, note)
    assert.match(flow.credential(answer, '00'.repeat(32)), /^(?:Payment|L402) /)
    assert.deepEqual(answer.lines('cache-control'), ['no-store'], note)
    assert.deepEqual(answer.lines('payment-receipt'), [], note)
  }
}
