/**
 * The purchases that this browser has begun and not yet delivered, the latest first: the SDK's record of each, from
 * before its invoice is shown until its key was saved, so that a lost tab loses no money. None is dropped by a clock:
 * the service says when an order is over.
 */
import { signal } from '@preact/signals'
import type { PurchaseRecord, PurchaseStore } from '../../client/index.ts'
import { lastOf } from '../../client/record.ts'
import { isObject } from '../../lib/json.ts'
import { isPlanId, isProduct } from '../../lib/product-names.ts'
import { browserStore, tabStore } from './storage.ts'
import { type Terms, termsWithPrice } from './terms.ts'

/** How a secret may be read. Its content is not stored. */
export type PendingSecret = {
  /** A password that the page made, since nobody knows it by heart. One that was typed is not stored. */
  suggested: string | null
  readLimit: number
  /** RFC 3339, or null. */
  revealAt: string | null
  receipt: boolean
  revealWhen: string | null
}

/** What opens a secret. */
export type Opening = Required<PurchaseRecord>['whisper']

/** A purchase on the terms that its page showed. It is stored once it has an invoice. */
export type Begun = Terms & {
  idempotencyKey: string
  /** The public id of what is extended. */
  extends?: string
  secret?: PendingSecret
}
export type Unfinished = Begun & { record: PurchaseRecord }

const STORED = 'mayfly.unfinished'
const TAB = 'mayfly.paying'
/** More than one browser needs. Beyond, the oldest unpaid ones are dropped. */
const MAX_UNFINISHED = 20

export const unfinished = signal<readonly Unfinished[]>(readAll())

globalThis.addEventListener?.('storage', () => {
  unfinished.value = readAll()
})

export const begin = <Kind extends Omit<Begun, 'idempotencyKey'>>(purchase: Kind) => ({
  ...purchase,
  idempotencyKey: crypto.randomUUID(),
})

/** Where the SDK keeps the record of this purchase. */
export function storeOf(purchase: Begun) {
  return {
    load: recordOf,
    save(record) {
      const before = recordOf(record.idempotencyKey)
      if (record.revision !== (before?.revision ?? 0) + 1) return false
      const next = { ...purchase, record }
      if (before) save(readAll().map((each) => (isSame(each, record) ? next : each)))
      else {
        const isNeeded = (each: Unfinished, at: number) => at < MAX_UNFINISHED - 1 || isPaid(each)
        save([next, ...readAll().filter(isNeeded)])
        adopt(purchase)
      }
      return true
    },
  } satisfies PurchaseStore
}

function recordOf(idempotencyKey: string): PurchaseRecord | null {
  return readAll().find((each) => isSame(each, { idempotencyKey }))?.record ?? null
}

type Named = Pick<Begun, 'idempotencyKey'>
const isSame = (one: Named, other: Named): boolean => one.idempotencyKey === other.idempotencyKey

export const isPaid = ({ record }: Unfinished): boolean => record.state !== 'quoted'

/** Ends a purchase: its key is saved, or there is none. */
export function end(purchase: Named): void {
  save(readAll().filter((each) => !isSame(each, purchase)))
  const left = keysOfTab().filter((key) => key !== purchase.idempotencyKey)
  tabStore.write(TAB, left.length === 0 ? null : left)
}

/** Those that this tab has begun or gone on with, the latest first: a reload goes on with them. */
export const ofThisTab = (): Unfinished[] =>
  keysOfTab().flatMap((idempotencyKey) =>
    unfinished.value.filter((each) => isSame(each, { idempotencyKey })),
  )

/** This tab goes on with a purchase that another one began. */
export function adopt({ idempotencyKey }: Named): void {
  tabStore.write(TAB, [...new Set([idempotencyKey, ...keysOfTab()])])
}

/** What collects the order on any device: a text to copy or save. */
export function recoveryText(purchase: Begun): string {
  const { idempotencyKey } = purchase
  const record = recordOf(idempotencyKey)
  if (record === null) return ''
  const { orderId, bolt11 } = lastOf(record)
  const { whisper } = record
  const lines = [
    'Mayfly recovery text. Anyone with it can collect this order.',
    `service: ${location.origin}`,
    `purchase: ${termsWithPrice(purchase)}`,
    `order: ${orderId}`,
    `key: ${idempotencyKey}`,
    ...(whisper ? [`opens: ${whisper.key}${whisper.hasPassword ? ':p' : ''}`] : []),
    `invoice: ${bolt11}`,
  ]
  return `${lines.join('\n')}\n`
}

export type Recovery = {
  orderId: string
  idempotencyKey: string
  bolt11: string
  opening: Opening | null
}

/** Reads such a text, or null. */
export function parseRecovery(text: string): Recovery | null {
  const lineOf = (name: string): string | null =>
    new RegExp(`^${name}: *(\\S+)\\s*$`, 'm').exec(text)?.[1] ?? null
  const [orderId, idempotencyKey, bolt11] = [lineOf('order'), lineOf('key'), lineOf('invoice')]
  if (orderId === null || idempotencyKey === null || bolt11 === null) return null
  const [key = '', mark] = lineOf('opens')?.split(':') ?? []
  const opening = key === '' ? null : { key, hasPassword: mark === 'p' }
  return { orderId, idempotencyKey, bolt11, opening }
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
  if (!isObject(value) || !isObject(value.record)) return false
  const { product, planId, priceSats, idempotencyKey, record } = value
  return (
    isProduct(product) &&
    isPlanId(planId) &&
    typeof priceSats === 'number' &&
    idempotencyKey === record.idempotencyKey &&
    Array.isArray(record.invoices) &&
    typeof record.invoices.at(-1)?.bolt11 === 'string' &&
    (product !== 'whisper' || (isObject(value.secret) && isObject(record.whisper)))
  )
}
