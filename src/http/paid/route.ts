/** How a product describes its paid route. */
import type { FastifyReply, FastifyRequest, FastifySchema } from 'fastify'
import type { TSchema } from 'typebox'
import type { Statement } from '../../db/db.ts'
import type { Json } from '../../lib/jcs.ts'
import { isObject, parseStrictJsonBytes } from '../../lib/json.ts'
import type { PlanId, Product } from '../../lib/product-names.ts'
import type { PlanTerms } from '../../payment/provisioning.ts'
import type { Phrase } from '../../protocol/errors.ts'
import { invalid } from '../errors.ts'
import { PlanSelection } from '../schemas.ts'
import { faultIn, validatorOf } from '../validation.ts'
import type { Shown } from './flows.ts'

export type PaidRoute = {
  product: Product
  path: string
  /** One line for the OpenAPI document. */
  summary: string
  contentType: 'application/json' | 'application/octet-stream'
  /** The largest body under the plans as they are now. */
  maxBodyBytes(): number
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
  /** The capability that an order extends. Left out: orders sell a new one. */
  extendsId?(request: FastifyRequest): string
  /** Refuses a client who may not open an order. @throws Problem from the catalogue. */
  admit?(ask: {
    planId: PlanId
    plan: SoldPlan
    request: FastifyRequest
    reply: FastifyReply
  }): Promise<void>
  /** Of a purchase by one URL, which has no key. A credential is bound to the first of the methods, and to this target. */
  oneUrl?: {
    methods: readonly ('GET' | 'HEAD' | 'POST')[]
    /** The address says all: a body says nothing, and counts as empty. */
    isEmpty: boolean
    target(request: FastifyRequest): string
    shown(request: FastifyRequest): Shown
    /** Its plans and prices can change while the service runs. */
    describe(method: 'GET' | 'HEAD' | 'POST'): FastifySchema
  }
  /** Where the document says other things than of a purchase. `settled` is the 200. */
  described?: Pick<FastifySchema, 'operationId' | 'isInWholeOnly' | 'params'> & { settled: object }
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

// The JSON body of a purchase: `{"planId": …}` and nothing else.

/** The JSON needs much less, even with spaces. */
const MAX_PLAN_SELECTION_BYTES = 4 * 1024

/** The route of a product of which a plan says all. */
export const soldByPlan = (
  product: Product,
  about: Pick<PaidRoute, 'summary' | 'resourceSchema'>,
  plans: Readonly<Record<PlanId, SoldPlan & { available: boolean }>>,
): PaidRoute => ({
  ...about,
  product,
  path: `/api/payments/${product}`,
  contentType: 'application/json',
  maxBodyBytes: () => MAX_PLAN_SELECTION_BYTES,
  bodySchema: PlanSelection,
  headerSchemas: {},
  parse: (body) => ({ planId: parsePlanSelection(body), terms: null }),
  plan: (planId) => (plans[planId].available ? plans[planId] : null),
})

/** @throws Problem `invalid request body` for a body that says anything: the address has said it all. */
export function refuseAnyBody(body: Buffer): void {
  if (body.length === 0) return
  const value = parseStrictJsonBytes(body)
  if (isObject(value) && Object.keys(value).length === 0) return
  throw invalid('invalid request body', { expected: 'nothing, or {}' })
}

/** @throws Problem `invalid plan` for an unknown plan, `invalid request body` for anything else. */
export function parsePlanSelection(body: Buffer): PlanId {
  const value = parseStrictJsonBytes(body)
  if (validatorOf(PlanSelection).Check(value)) return value.planId
  const isOnlyThePlan =
    isObject(value) && Object.keys(value).join() === 'planId' && typeof value.planId === 'string'
  throw invalid(
    isOnlyThePlan ? 'invalid plan' : 'invalid request body',
    faultIn(PlanSelection, value),
  )
}
