/**
 * The names of the products, the kinds of their ids and tokens, and the ids of the plans. All rooms read
 * this, including the SDK and the pages. The rest of a product is in its folder and its entry in
 * `src/service/products.ts`.
 */

/**
 * Products that buyers pay for. `tokens` are the secret members that each capability has, `extraTokens` those
 * that a buyer may ask for.
 */
export const SOLD_PRODUCTS = {
  catch: {
    ids: ['catch'],
    tokens: { ownerToken: 'catch_owner', ingestToken: 'catch_ingest' },
    extraTokens: {},
  },
  whisper: {
    ids: ['whisper'],
    tokens: { readToken: 'whisper_read' },
    extraTokens: { receiptToken: 'whisper_receipt' },
  },
  pulse: {
    ids: ['pulse', 'pulse_status'],
    tokens: { ownerToken: 'pulse_owner', pingToken: 'pulse_ping' },
    extraTokens: {},
  },
} as const

/** Products that the operator sets up. Nobody buys them here. */
export const OPERATED_PRODUCTS = {
  gate: { ids: ['gate_project', 'gate_intent'], tokens: { key: 'gate_key' }, extraTokens: {} },
} as const

/** A product that is sold. */
export type Product = keyof typeof SOLD_PRODUCTS
export type AnyProduct = Product | keyof typeof OPERATED_PRODUCTS

export const PRODUCT_NAMES = Object.keys(SOLD_PRODUCTS) as Product[]

export const PLAN_IDS = ['spark', 'standard', 'long'] as const
export type PlanId = (typeof PLAN_IDS)[number]

/** Whether a text from outside names a product that is sold. */
export function isProduct(text: unknown): text is Product {
  return PRODUCT_NAMES.some((name) => name === text)
}

/** Whether a text from outside names a plan. */
export function isPlanId(text: unknown): text is PlanId {
  return PLAN_IDS.some((planId) => planId === text)
}

type Kinds =
  | (typeof SOLD_PRODUCTS)[Product]
  | (typeof OPERATED_PRODUCTS)[keyof typeof OPERATED_PRODUCTS]
type Values<T> = T extends unknown ? T[keyof T] : never
/** The kinds of ids that products have, such as `pulse_status`. */
export type ProductIdKind = Kinds['ids'][number]
/** The kinds of tokens, such as `pulse_ping`. */
export type ProductTokenKind = Values<Kinds['tokens']> | Values<Kinds['extraTokens']>

const kinds = Object.values<Kinds>({ ...SOLD_PRODUCTS, ...OPERATED_PRODUCTS })
export const PRODUCT_TOKEN_KINDS = kinds.flatMap(({ tokens, extraTokens }) =>
  Object.values<ProductTokenKind>({ ...tokens, ...extraTokens }),
)
