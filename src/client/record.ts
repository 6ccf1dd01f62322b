/**
 * A purchase as a record, which is written before money moves and names the one invoice that it may pay. The store is
 * the caller's: two functions.
 */
import { utf8 } from '../lib/bytes.ts'
import type { PlanId, Product } from '../lib/product-names.ts'
import { sha256 } from '../lib/sha256.ts'
import { MayflyError } from './errors.ts'
import type { ApiRequest } from './http.ts'
import type { PaymentQuote } from './purchase.ts'

/**
 * Where a purchase is. `quoted`: it has an invoice, and no wallet was asked. `paying`: a wallet may pay that invoice,
 * whatever anybody says. `failed`: the wallet says that it did not, and may be asked again until it expires. `paid`: the record has the preimage.
 * `delivered`: it has what was bought.
 */
export type PurchaseState = 'quoted' | 'paying' | 'failed' | 'paid' | 'delivered'

/** An invoice that a purchase was given. `handedAt` is when a wallet was last asked to pay it. */
export type RecordedInvoice = PaymentQuote & {
  handedAt?: string
  /** The most that the wallet can have spent on it, fees and repeated attempts included. */
  reservedMsat?: number
}

/** A purchase. Its key collects it, so keep it as secret as what is bought. */
export type PurchaseRecord = {
  version: 1
  /** Grows by one with each write. */
  revision: number
  idempotencyKey: string
  state: PurchaseState
  /** The service's address. Null for an invoice that was given as it is. */
  service: string | null
  product: Product | null
  planId: PlanId | null
  /** The public id of what is extended. */
  extends?: string
  /** The SHA-256 of the request, without its key. */
  requestSha256: string
  /** The ceiling of this purchase. */
  maxSats: number
  /** The wallet that was asked, and no other may be. Beyond `quoted`, null means that nobody knows which one it was. */
  wallet: string | null
  /** Every invoice that it was given. The last one is the one that may be paid. */
  invoices: RecordedInvoice[]
  preimage?: string
  /** The fee that the wallet paid, if it says so. */
  feeMsat?: number
  /** What opens a whisper that is bought. */
  whisper?: { key: string; hasPassword: boolean }
  /** With `delivered`: what the service handed out. */
  resource?: unknown
}

/**
 * Keeps purchases, so that none is paid twice and none is lost when the process ends.
 *
 * ```ts
 * const store: PurchaseStore = { load: () => null, save: (record) => record.revision === 1 }
 * ```
 */
export type PurchaseStore = {
  /** The record of this key. */
  load(idempotencyKey: string): PurchaseRecord | null | Promise<PurchaseRecord | null>
  /**
   * Writes a record to disk, in one step, if the stored one has the revision before it; revision 1 only if there is
   * none. Answers whether it did. What it throws ends the purchase before its next step.
   */
  save(record: PurchaseRecord): boolean | Promise<boolean>
}

/** The invoice that may be paid. */
export function lastOf({ invoices }: PurchaseRecord): RecordedInvoice {
  const last = invoices.at(-1)
  if (last === undefined) throw new MayflyError('order not found', 0)
  return last
}

/** A store that ends with the process, and its promise with it. */
export function memoryStore(): PurchaseStore {
  const records = new Map<string, PurchaseRecord>()
  return {
    load: (key) => records.get(key) ?? null,
    save(record) {
      const before = records.get(record.idempotencyKey)?.revision ?? 0
      if (record.revision !== before + 1) return false
      records.set(record.idempotencyKey, record)
      return true
    },
  }
}

/** What is ordered, and the request that orders it. */
export type Order = Pick<ApiRequest, 'path' | 'headers' | 'body'> &
  Pick<PurchaseRecord, 'product' | 'planId' | 'extends' | 'whisper'>

/** The record of a purchase that has no invoice yet, and is not written. */
export async function newRecord(
  { path, headers = {}, body = '', ...ordered }: Order,
  begun: Pick<PurchaseRecord, 'idempotencyKey' | 'service' | 'maxSats'>,
): Promise<PurchaseRecord> {
  // A capability's token is in no record of its extension, and neither is anything made of it.
  const terms = Object.entries(headers).filter(([name]) => name !== 'x-owner-token')
  const bodySha256 = await sha256(typeof body === 'string' ? utf8(body) : body)
  return {
    version: 1,
    revision: 0,
    state: 'quoted',
    ...ordered,
    ...begun,
    requestSha256: await sha256(utf8(JSON.stringify([path, terms.sort(), bodySha256]))),
    wallet: null,
    invoices: [],
  }
}
