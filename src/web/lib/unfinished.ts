/**
 * The purchases that this browser has begun and not yet delivered, the latest first. Each is stored before the first
 * request and until its key was saved, so that a lost tab loses no money. None is dropped by a clock: the service
 * says when an order is over.
 */
import { signal } from '@preact/signals'
import type { PaymentQuote } from '../../client/index.ts'
import { isPlanId, isProduct } from '../../lib/product-names.ts'
import { browserStore, tabStore } from './storage.ts'
import { type Terms, termsWithPrice } from './terms.ts'

/** What opens a secret, and how it may be read. Its content is not stored. */
export type PendingSecret = {
  /** The key of the envelope, in base64url. */
  key: string
  hasPassword: boolean
  /** A password that the page made, since nobody knows it by heart. One that was typed is not stored. */
  suggested: string | null
  readLimit: number
  /** RFC 3339, or null. */
  revealAt: string | null
  receipt: boolean
  revealWhen: string | null
}

export type Unfinished = Terms & {
  idempotencyKey: string
  /** Null before the service has answered: then there is no invoice, and nothing was paid. */
  quote: PaymentQuote | null
  /** The proof, once a wallet of this page has paid. */
  preimage?: string
  /** Paid and delivered, and not saved yet. */
  isPaid?: boolean
  /** The public id of what is extended. */
  extends?: string
  secret?: PendingSecret
}

export const UNFINISHED = 'You have an unfinished purchase'
const STORED = 'mayfly.unfinished'
const TAB = 'mayfly.paying'
/** More than one browser needs. Beyond, the oldest unpaid ones are dropped. */
const MAX_UNFINISHED = 20

export const unfinished = signal<readonly Unfinished[]>(readAll())

globalThis.addEventListener?.('storage', () => {
  unfinished.value = readAll()
})

/** Stores a purchase with a new key, before its first request. */
export function begin(purchase: Omit<Unfinished, 'idempotencyKey' | 'quote'>): Unfinished {
  const begun = { ...purchase, idempotencyKey: crypto.randomUUID(), quote: null }
  const isNeeded = ({ isPaid, preimage }: Unfinished, at: number) =>
    at < MAX_UNFINISHED - 1 || isPaid === true || preimage !== undefined
  save([begun, ...readAll().filter(isNeeded)])
  tabStore.write(TAB, [begun.idempotencyKey, ...keysOfTab()])
  return begun
}

/** Stores more about a purchase, such as its invoice or the proof of payment. */
export function note(
  { idempotencyKey }: Pick<Unfinished, 'idempotencyKey'>,
  more: Partial<Pick<Unfinished, 'quote' | 'preimage' | 'isPaid'>>,
): void {
  save(
    readAll().map((each) => (each.idempotencyKey === idempotencyKey ? { ...each, ...more } : each)),
  )
}

/** Ends a purchase: its key is saved, or there is none. */
export function end({ idempotencyKey }: Pick<Unfinished, 'idempotencyKey'>): void {
  save(readAll().filter((each) => each.idempotencyKey !== idempotencyKey))
  const left = keysOfTab().filter((key) => key !== idempotencyKey)
  tabStore.write(TAB, left.length === 0 ? null : left)
}

/** The stored purchase, with all that was noted since. */
export const latest = (purchase: Unfinished): Unfinished =>
  readAll().find(({ idempotencyKey }) => idempotencyKey === purchase.idempotencyKey) ?? purchase

/** Whether this tab began it, so that a reload goes on with it. */
export const isOfThisTab = ({ idempotencyKey }: Unfinished): boolean =>
  keysOfTab().includes(idempotencyKey)

/** This tab goes on with a purchase that another one began. */
export function adopt({ idempotencyKey }: Unfinished): void {
  tabStore.write(TAB, [...new Set([idempotencyKey, ...keysOfTab()])])
}

/** What collects the order on any device: a text to copy or save. */
export function recoveryText(purchase: Unfinished): string {
  const { quote, idempotencyKey, secret } = purchase
  const lines = [
    'Mayfly recovery text. Anyone with it can collect this order.',
    `service: ${location.origin}`,
    `purchase: ${termsWithPrice(purchase)}`,
    `order: ${quote?.orderId ?? ''}`,
    `key: ${idempotencyKey}`,
    ...(secret ? [`opens: ${secret.key}${secret.hasPassword ? ':p' : ''}`] : []),
    `invoice: ${quote?.bolt11 ?? ''}`,
  ]
  return `${lines.join('\n')}\n`
}

export type Recovery = {
  orderId: string
  idempotencyKey: string
  bolt11: string
  secret: Pick<PendingSecret, 'key' | 'hasPassword'> | null
}

/** Reads such a text, or null. */
export function parseRecovery(text: string): Recovery | null {
  const lineOf = (name: string): string | null =>
    new RegExp(`^${name}: *(\\S+)\\s*$`, 'm').exec(text)?.[1] ?? null
  const [orderId, idempotencyKey, bolt11] = [lineOf('order'), lineOf('key'), lineOf('invoice')]
  if (orderId === null || idempotencyKey === null || bolt11 === null) return null
  const [key = '', mark] = lineOf('opens')?.split(':') ?? []
  const secret = key === '' ? null : { key, hasPassword: mark === 'p' }
  return { orderId, idempotencyKey, bolt11, secret }
}

function keysOfTab(): string[] {
  const keys = tabStore.read(TAB)
  return Array.isArray(keys) ? keys.filter((key) => typeof key === 'string') : []
}

function save(all: readonly Unfinished[]): void {
  browserStore.write(STORED, all.length === 0 ? null : all)
  unfinished.value = all
}

function readAll(): Unfinished[] {
  const stored = browserStore.read(STORED)
  return Array.isArray(stored) ? stored.filter(isUnfinished) : []
}

function isUnfinished(value: unknown): value is Unfinished {
  const each = (value ?? {}) as Partial<Record<keyof Unfinished, unknown>>
  const quote = each.quote as Partial<PaymentQuote> | null
  return (
    isProduct(each.product) &&
    isPlanId(each.planId) &&
    typeof each.priceSats === 'number' &&
    typeof each.idempotencyKey === 'string' &&
    (quote === null || (typeof quote?.orderId === 'string' && typeof quote.bolt11 === 'string')) &&
    (each.product !== 'whisper' || typeof (each.secret as PendingSecret)?.key === 'string')
  )
}
