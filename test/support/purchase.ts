/** Purchases of an inbox with anything in them, and what they leave in the store. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type After, temporaryFolder } from './folder.ts'
import { settled } from './http.ts'
import type { TestServer } from './server.ts'
import { query } from './store.ts'

export const PURCHASE = '/api/payments/catch'
export const SPARK = JSON.stringify({ planId: 'spark' })
export const MINUTES_15 = 15 * 60 * 1000

export type Ask = {
  /** Default: a fresh one. Null: none. */
  key?: string | null
  body?: string | Uint8Array<ArrayBuffer>
  headers?: Record<string, string>
  /** The address that a trusted proxy reports. */
  from?: string
}

export type Answer = { status: number; headers: Headers; text: string }

export async function purchase(server: TestServer, ask: Ask): Promise<Answer> {
  const { key = randomUUID(), body = SPARK, from } = ask
  const answer = await fetch(server.url + PURCHASE, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(key === null ? {} : { 'idempotency-key': key }),
      ...(from === undefined ? {} : { 'x-forwarded-for': from }),
      ...ask.headers,
    },
    body,
  })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

export type Quote = { orderId: string; bolt11: string; paymentHash: string }

export async function aQuote(server: TestServer, ask: Ask): Promise<Quote> {
  const answer = await purchase(server, ask)
  assert.equal(answer.status, 402, answer.text)
  return JSON.parse(answer.text)
}

/** Pays, and waits until the server says that the order is settled. */
export async function payAndSettle(server: TestServer, quote: Quote): Promise<void> {
  const settlement = settled(server)
  await server.pay(quote.bolt11)
  await settlement
}

export async function pay(
  server: TestServer,
  body: unknown,
): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${server.url}/simulator/pay`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: answer.status, text: await answer.text() }
}

export async function count(server: TestServer): Promise<{ orders: number; invoices: number }> {
  const rows = async (table: string): Promise<number> =>
    Number((await query(server, `select count(*) as n from ${table}`))[0]?.n)
  return { orders: await rows('purchase_order'), invoices: await rows('simulator_invoice') }
}

export async function assertNothingHappened(server: TestServer): Promise<void> {
  assert.deepEqual(await count(server), { orders: 0, invoices: 0 })
}

export async function aCatalog(t: After, plans: unknown): Promise<string> {
  const file = join(await temporaryFolder(t), 'catalog.json')
  await writeFile(file, JSON.stringify(plans))
  return file
}
