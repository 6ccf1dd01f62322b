/** Extensions over plain HTTP, and what they have changed. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { CatchStatus, PulseStatus } from '../../src/client/index.ts'
import { type Answer, type Ask, purchase, quoteOf } from './buying.ts'
import { anInbox } from './catch.ts'
import { aMonitor } from './pulse.ts'
import type { TestServer } from './server.ts'

/** A capability that its owner can extend. */
export type Held = {
  product: 'catch' | 'pulse'
  publicId: string
  ownerToken: string
  expiresAt: string
}

export type Extendable = {
  name: 'catch' | 'pulse'
  buy(server: TestServer): Promise<Held>
  /** The limits of the plan `spark`. */
  limits: Record<string, number>
}

export const EXTENDABLE: readonly Extendable[] = [
  {
    name: 'catch',
    buy: (server) => anInbox(server),
    limits: { requestLimit: 100, storageLimitBytes: 5 * 1024 * 1024 },
  },
  {
    name: 'pulse',
    buy: (server) => aMonitor(server),
    limits: { heartbeatLimit: 4_500 },
  },
]

/** The life of the plan `spark`. */
export const SPARK_MS = 24 * 60 * 60 * 1000

export const pathOf = ({ product, publicId }: Pick<Held, 'product' | 'publicId'>): string =>
  `/api/${product}/${publicId}/extend`

/** Asks for an extension, with the owner token unless the ask says otherwise. */
export function extend(server: { url: string }, held: Held, ask: Ask = {}): Promise<Answer> {
  return purchase(server, {
    key: randomUUID(),
    target: pathOf(held),
    ...ask,
    headers: { 'x-owner-token': held.ownerToken, ...ask.headers },
  })
}

/** Repeats it without the owner token. */
export function repeat(server: { url: string }, held: Held, ask: Ask): Promise<Answer> {
  return purchase(server, { target: pathOf(held), ...ask })
}

/** Opens an extension and pays its invoice. */
export async function paidExtension(server: TestServer, held: Held, key: string = randomUUID()) {
  const quote = quoteOf(await extend(server, held, { key }))
  const preimage = await server.pay(quote.bolt11)
  return { ...quote, key, preimage }
}

export async function statusOf(
  server: { url: string },
  { product, publicId, ownerToken }: Held,
): Promise<(CatchStatus & PulseStatus) | null> {
  const answer = await fetch(`${server.url}/api/${product}/${publicId}`, {
    headers: { authorization: `Bearer ${ownerToken}` },
  })
  return answer.status === 200
    ? ((await answer.json()) as unknown as CatchStatus & PulseStatus)
    : null
}

/** Asserts that the plan `spark` was added this many times to what was bought. */
export async function assertExtended(
  server: { url: string },
  { held, times, limits }: { held: Held; times: number; limits: Extendable['limits'] },
): Promise<void> {
  const status = await statusOf(server, held)
  assert.ok(status)
  const end = Date.parse(held.expiresAt) + times * SPARK_MS
  assert.equal(status.expiresAt, new Date(end).toISOString())
  for (const [name, limit] of Object.entries(limits)) {
    assert.equal(status[name as keyof typeof status], limit * (1 + times), name)
  }
}

/** The end in the answer of a paid extension. */
export function endIn({ status, text }: Pick<Answer, 'status' | 'text'>): string {
  assert.equal(status, 200, text)
  const { settled, extended, expiresAt, ...rest } = JSON.parse(text)
  assert.deepEqual([settled, extended, rest], [true, true, {}])
  return expiresAt
}
