/**
 * Extending a capability before it ends: an order like a purchase, which adds the plan's time and limits to what
 * the buyer already has. The owner token is needed only where an order is opened, because Authorization carries the
 * credential that pays for it.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { TSchema } from 'typebox'
import type { Clock } from '../../lib/clock.ts'
import { isId, type TokenKind } from '../../lib/ids.ts'
import { Type } from '../../lib/json-schema.ts'
import type { PlanId } from '../../lib/product-names.ts'
import { extendedEnd, extendedLimit } from '../../payment/provisioning.ts'
import type { App } from '../app.ts'
import { OWNER_TOKEN, ownerTokenOf } from '../credentials.ts'
import { invalid, problem, unauthorized } from '../errors.ts'
import { LIMITS } from '../limits.ts'
import { answer, SettledExtension, settled } from '../schemas.ts'
import { nameOf, PAYMENT_RECEIPT } from './described.ts'
import { mountPaidRoute, type Paying } from './paid.ts'
import type { PaidRoute, SoldPlan } from './route.ts'

/** What a product says of a capability that its owner wants to extend. */
type Extendable = {
  planId: PlanId
  /** Unix milliseconds. */
  expiresAt: number
  /** Whether it works: it has not ended, is not used up and not suspended. */
  isActive: boolean
  /** Its limits, under the names of the plan's fields that are added to them. */
  limits: Record<string, number>
}

export type ExtensionRoute<Row> = {
  /** What the capability is called in a sentence. */
  noun: string
  kind: TokenKind
  publicId: TSchema
  service: {
    owned(publicId: string, token: string): Promise<Row | null>
    used(row: Row): Promise<void>
  }
  of(row: Row): Extendable
}

/** @param bought the route that sells what is extended. */
export function mountExtension<Row>(
  app: App,
  deps: Paying & { clock: Clock },
  { bought, noun, kind, publicId, service, of }: ExtensionRoute<Row> & { bought: PaidRoute },
): void {
  const { orders, limits, clock } = deps
  const { product } = bought

  async function owned(request: FastifyRequest, reply: FastifyReply): Promise<Row> {
    const id = targetOf(request)
    const token = ownerTokenOf(request.raw, kind)
    if (token === null) return limits.refuse(unauthorized(), request, reply)
    const row = isId(product, id) ? await service.owned(id, token) : null
    if (!row) return limits.refuse(problem('not found'), request, reply)
    await limits.take(LIMITS.owner, id, reply)
    return row
  }

  /** Whether another order may add the plan. Those that are open already count, because all may be paid. */
  async function hasRoom(id: string, extendable: Extendable, plan: SoldPlan): Promise<boolean> {
    const open = await orders.openExtensions(id)
    const after = extendable.expiresAt + open * plan.durationSeconds * 1000
    const isInTime = extendedEnd(after, plan, clock.now()) !== null
    const limits = Object.entries(extendable.limits)
    return (
      isInTime &&
      limits.every(([name, limit]) => extendedLimit(limit, Number(plan[name]), open + 1) !== null)
    )
  }

  mountPaidRoute(app, deps, {
    ...bought,
    path: `/api/${product}/:publicId/extend`,
    summary: `Extend ${noun}: adds the time and the limits of its plan`,
    headerSchemas: { [OWNER_TOKEN]: ownerTokenHeader },
    phrases: ['unauthorized', 'not found', 'cannot be extended'],
    extendsId: targetOf,
    async admit({ planId, plan, request, reply }) {
      const row = await owned(request, reply)
      const extendable = of(row)
      if (planId !== extendable.planId) {
        throw invalid('invalid plan', { field: 'planId', expected: extendable.planId })
      }
      const isPossible = extendable.isActive && (await hasRoom(targetOf(request), extendable, plan))
      if (!isPossible) throw problem('cannot be extended')
      await service.used(row)
    },
    described: {
      operationId: `extend${nameOf(bought)}`,
      isInWholeOnly: true,
      params: Type.Object({ publicId }),
      settled: answer(
        Type.Union([SettledExtension, settled(bought.resourceSchema, `Settled${nameOf(bought)}`)], {
          'x-schema': `${nameOf(bought)}Extension`,
        }),
        {
          description: `Paid and extended, with no token; or, if it had ended before the payment, ${noun} in its place, for proof of the payment alone.`,
          headers: PAYMENT_RECEIPT,
        },
      ),
    },
  })
}

const targetOf = (request: FastifyRequest): string =>
  (request.params as { publicId: string }).publicId

const ownerTokenHeader = Type.Optional(
  Type.String({
    description:
      'The owner token, where the order is opened; repeats and the paid request do without it',
    examples: ['catch_owner_4Zc...'],
  }),
)
