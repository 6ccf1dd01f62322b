/** What the documents of this room tell of the service. They are made of it, and of nothing else. */
import type { OperatorFacts } from '../http/operator.ts'
import type { Product } from '../lib/product-names.ts'
import type { Network } from '../lightning/lightning.ts'

export type Announced = {
  /** The address that clients use, without a slash at its end. */
  baseUrl: string
  network: Network
  isSimulator: boolean
  /** Whether it offers its tools to hosts of MCP. */
  hasMcp: boolean
  operator: OperatorFacts
  /** The products with a plan on sale. */
  products: readonly AnnouncedProduct[]
}

export type AnnouncedProduct = {
  name: Product
  /** One sentence of the catalogue. */
  about: string
  /** Its part of /llms.txt. `{base_url}` stands for the service's address. */
  guide: string
  /** What its skill is for, and when to use it. */
  skill: string
  /** The plans on sale. */
  plans: readonly AnnouncedPlan[]
}

type AnnouncedPlan = {
  planId: string
  priceSats: number
  /** Its purchase by one URL, which the path that shows L402 alone stands for. Null if it has none. */
  byUrl: { method: 'GET' | 'POST'; l402Path: string } | null
}

/** `CATCH`, as people read it. */
export const titleOf = (product: Product): string => product.toUpperCase()

/** Says that no real money moves, if so. Every document has it: a program must not take play for payment. */
export function noticeOf({
  isSimulator,
  network,
}: Pick<Announced, 'isSimulator' | 'network'>): string {
  if (isSimulator) return 'This service runs on a simulator: no real money moves.'
  return network === 'mainnet' ? '' : `This service runs on ${network}: no real money moves.`
}

/** Sentences, one after another. */
export const sentences = (...texts: string[]): string =>
  texts.filter((text) => text !== '').join(' ')
