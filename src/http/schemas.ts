/** Schemas that several rooms share. Names and bounds are the interface's. */
import { Type } from 'typebox'
import { ERRORS, type Phrase } from './errors.ts'

export const PlanIdSchema = Type.Enum(['spark', 'standard', 'long'])
export const NetworkSchema = Type.Enum(['mainnet', 'regtest', 'signet'])
export const DateTime = Type.String({ format: 'date-time' })
const Count = (minimum: number) => Type.Integer({ minimum })
export const AtLeast0 = Count(0)
export const AtLeast1 = Count(1)

export const ErrorSchema = Type.Object({ error: Type.String() })

/** The error answers of an operation, for its `response`, with the phrases each may carry. */
export function errors(...phrases: Phrase[]) {
  const responses: Record<number, typeof ErrorSchema & { description: string }> = {}
  for (const phrase of phrases) {
    const { status } = ERRORS[phrase]
    const others = responses[status]?.description
    responses[status] = Type.Object(
      { error: Type.String() },
      { description: others ? `${others} · ${phrase}` : phrase },
    ) as typeof ErrorSchema & { description: string }
  }
  return responses
}

export const PlanSelection = Type.Object({ planId: PlanIdSchema }, { additionalProperties: false })

export const PaymentQuote = Type.Object({
  orderId: Type.String(),
  product: Type.Enum(['catch', 'whisper', 'pulse']),
  planId: PlanIdSchema,
  amountSats: Type.Integer(),
  bolt11: Type.String(),
  paymentHash: Type.String(),
  expiresAt: DateTime,
  network: NetworkSchema,
})

/** The fields that every plan has. */
export const planFields = {
  planId: PlanIdSchema,
  priceSats: AtLeast1,
  durationLabel: Type.String(),
  bestFor: Type.String(),
  available: Type.Boolean(),
}

export const NoContent = Type.Null({ description: 'Done; no body.' })
