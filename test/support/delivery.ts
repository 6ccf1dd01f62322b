/** Orders over HTTP on their way to the buyer: opened, paid, delivered, and asked for again. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { eventId } from '../../src/catch/event-id.ts'
import type { CatchCapability } from '../../src/client/index.ts'
import { type Answer, answerOf } from './answer.ts'
import type { TestServer } from './server.ts'
import { holds, query } from './store.ts'

export const MINUTE = 60 * 1000
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR
/** The node is asked about one order at most this often. */
export const LOOKUP = 1_000

export const NOT_FOUND = { status: 404, text: '{"error":"order not found"}' }
export const DELIVERED = { status: 404, text: '{"error":"already delivered"}' }
export const EXPIRED = { status: 404, text: '{"error":"order expired"}' }

export type Quote = { orderId: string; bolt11: string; paymentHash: string; expiresAt: string }
export type Order = Quote & { key: string; quoted: string }
export type Plan = 'spark' | 'standard'

export async function anOrder(server: TestServer, plan: Plan = 'spark'): Promise<Order> {
  const key = randomUUID()
  const { status, text } = await purchase(server, key, plan)
  assert.equal(status, 402, text)
  return { ...JSON.parse(text), key, quoted: text }
}

/** Paid and settled, and delivered to nobody. */
export async function aPaidOrder(server: TestServer, plan: Plan = 'spark'): Promise<Order> {
  const order = await anOrder(server, plan)
  const settled = settlement(server, order)
  await server.pay(order.bolt11)
  await settled
  return order
}

export async function aDeliveredOrder(
  server: TestServer,
): Promise<Order & { inbox: CatchCapability; text: string }> {
  const order = await aPaidOrder(server)
  const { status, text } = await poll(server, order.orderId)
  assert.equal(status, 200, text)
  return { ...order, text, inbox: JSON.parse(text).resource }
}

export async function purchase(
  server: TestServer,
  key: string,
  planId: Plan = 'spark',
): Promise<Answer> {
  return answerOf(
    await fetch(`${server.url}/api/payments/catch`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify({ planId }),
    }),
  )
}

export async function poll(
  server: TestServer,
  orderId: string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return answerOf(await fetch(`${server.url}/api/payments/${orderId}`, { headers }))
}

export async function ingest(
  server: TestServer,
  publicId: string,
  headers: Record<string, string> = {},
): Promise<number> {
  const answer = await fetch(`${server.url}/c/${publicId}`, { method: 'POST', headers, body: 'x' })
  return answer.status
}

export const bearer = (token: string): { authorization: string } => ({
  authorization: `Bearer ${token}`,
})

/** Resolves when the server says that it has settled this order. */
export function settlement({ logged }: TestServer, { paymentHash }: Quote): Promise<void> {
  return new Promise((resolve) => {
    const push = logged.push.bind(logged)
    logged.push = (...lines) => {
      for (const line of lines) {
        const facts = JSON.parse(line)
        if (facts.event === 'order.settled' && facts.paymentHash === paymentHash) resolve()
      }
      return push(...lines)
    }
  })
}

export async function eventIdIn(server: TestServer): Promise<string> {
  const [row] = await query(server, 'select received_at, salt, sequence from catch_event')
  return eventId(row as Parameters<typeof eventId>[0])
}

export async function assertStoreLacks(server: TestServer, secrets: string[]): Promise<void> {
  for (const secret of secrets) assert.ok(!(await holds(server, secret)), 'it holds a secret')
}
