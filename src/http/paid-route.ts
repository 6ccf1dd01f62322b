/** How a product describes its paid route. */
import type { FastifyReply, FastifyRequest, FastifySchema } from 'fastify'
import type { TSchema } from 'typebox'
import type { Statement } from '../db/db.ts'
import type { Json } from '../lib/jcs.ts'
import type { PlanId, Product } from '../lib/product-names.ts'
import type { PlanTerms } from '../payment/provisioning.ts'
import type { Phrase } from './errors.ts'

export type PaidRoute = {
  product: Product
  path: string
  /** One line for the OpenAPI document. */
  summary: string
  contentType: 'application/json' | 'application/octet-stream'
  /** The largest body under the plans on sale. */
  maxBodyBytes: number
  /** The largest body under the plan that an order keeps, if plans limit it. */
  bodyBytesUnder?(plan: Json): number
  /** The error for a larger body. Default `request too large`. */
  tooLarge?: Phrase
  /** For the OpenAPI document. `parse` checks the request. */
  bodySchema: TSchema
  headerSchemas: Record<string, TSchema>
  resourceSchema: TSchema
  /** The errors that only this route answers, for the document. */
  phrases?: Phrase[]
  /** Checks the headers before the body is read. @throws Problem from the catalogue. */
  checkHeaders?(request: FastifyRequest): void
  /** The plan and terms that the buyer wants. @throws Problem from the catalogue. */
  parse(
    body: Buffer,
    request: FastifyRequest,
  ): { planId: PlanId; terms: Json | ((plan: Json) => Json) }
  /** The plan as it is sold now, or null if it is not on sale. */
  plan(planId: PlanId): SoldPlan | null
  /** The invoice's text: product and plan, nothing else. */
  memo(planId: PlanId): string
  /** The capability that an order extends. Left out: orders sell a new one. */
  extendsId?(request: FastifyRequest): string
  /** Refuses a client who may not open an order. @throws Problem from the catalogue. */
  admit?(ask: {
    planId: PlanId
    plan: SoldPlan
    request: FastifyRequest
    reply: FastifyReply
  }): Promise<void>
  /** Where the document says other things than of a purchase. `settled` is the 200. */
  described?: Pick<FastifySchema, 'operationId' | 'isLinked' | 'params'> & { settled: object }
  /**
   * Checks what matters only for a new order. Returns a function that makes the statements which reserve for it.
   * @throws Problem from the catalogue.
   */
  reserve?(ask: {
    planId: PlanId
    terms: Json
    body: Buffer
    clientNetwork: string
  }): Promise<(orderId: string) => Statement[]>
}

/** A plan with all of its fields. */
export type SoldPlan = PlanTerms & Record<string, Json>

/** What a purchase of one URL needs of a product's paid route. Products whose orders need a body have none. */
export type OneUrlRoute = Pick<
  PaidRoute,
  'product' | 'summary' | 'resourceSchema' | 'plan' | 'memo'
>
