/** Requests for the tests of orders, and checks of their outcomes. */
import assert from 'node:assert/strict'
import { type InvoiceState, UnknownInvoice } from '../../src/lightning/lightning.ts'
import type { CheckedCredential } from '../../src/payment/flows/flow.ts'
import { Refusal } from '../../src/payment/operator.ts'
import type { Outcome } from '../../src/payment/order.ts'
import { KEY, QUOTE_SECONDS, SECOND, type Shop } from './shop.ts'
import { unit } from './unit.ts'

export const OTHER_KEY = '9c1b7a52-6f0e-4d83-b2a4-8e7f6d5c4b3a'
export const QUOTE_LIFE = QUOTE_SECONDS * SECOND

/** A poll without the key. */
export const plainPoll = { key: null, isPrefetch: false }

/** A poll with the key that opened the order. */
export const keyPoll = { key: KEY, isPrefetch: false }

/** Calls `ask` this many times at once. */
export const many = <T>(count: number, ask: (i: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, i) => ask(i)))

/** The kinds of the outcomes, in alphabetical order. */
export const kinds = (outcomes: Outcome[]): string[] => outcomes.map(({ kind }) => kind).sort()

/** The credential that proves the payment of an order. */
export const verified = ({ paymentHash }: { paymentHash: string }): CheckedCredential<string> => ({
  kind: 'verified',
  paymentHash,
  challengeId: '',
})

/** One of ours with a wrong preimage. */
export const wrong = ({ paymentHash }: { paymentHash: string }): CheckedCredential<string> => ({
  kind: 'invalid',
  reason: 'wrong',
  paymentHash,
})

/** One that proves the payment, and was made for another request. */
export const mismatched = ({
  paymentHash,
}: {
  paymentHash: string
}): CheckedCredential<string> => ({
  kind: 'mismatched',
  paymentHash,
})

/** Sets columns of all orders, as no statement of a release does. */
export const set = ({ db }: Pick<Shop, 'db'>, columns: string) =>
  db.write(unit({ text: `update purchase_order set ${columns}`, values: [] }))

/** The log's lines with this event. */
export const events = (shop: Shop, event: string) =>
  shop.logged.filter((line) => line.event === event)

/** Sets the node's answer to all later look-ups. */
export function nodeSays(
  shop: Shop,
  state: InvoiceState | 'dead by guess' | 'unknown' | 'nothing',
): void {
  shop.node.replaced.lookupInvoice = async () => {
    if (state === 'unknown') throw new UnknownInvoice()
    if (state === 'nothing') throw new Error('connection refused')
    if (state === 'dead by guess') return { state: 'dead', isFinal: false }
    return state === 'dead' ? { state, isFinal: true } : { state }
  }
}

/** The delivered capability, and the outcome that every repeat must equal. */
export function delivered(outcome: Outcome | null) {
  assert.equal(outcome?.kind, 'delivered')
  const body = outcome?.kind === 'delivered' ? outcome.body : ''
  const { resource } = JSON.parse(body) as { resource: Record<string, string> }
  const { publicId = '', expiresAt = '', ownerToken = '' } = resource
  return { outcome, publicId, expiresAt, ownerToken }
}

/** How an operator names an order by its id. */
export const byId = (orderId: string) => ({ by: 'order_id', value: orderId }) as const

/** What a command of the operator came to, or the sentence that refuses it. */
export async function told<T>(work: Promise<T>): Promise<T | string> {
  try {
    return await work
  } catch (error) {
    if (error instanceof Refusal) return error.message
    throw error
  }
}
