/** What is on sale. */
import { Type } from 'typebox'
import { describe, type ToolDefinition, type Way } from './definition.ts'
import { Count, Network, PlanId } from './shared.ts'

/** The limits that the plans of a product have. */
export const PLAN_LIMITS = {
  catch: ['requestLimit', 'storageLimitBytes', 'maxBytesPerRequest'],
  whisper: ['readLimit', 'maxCiphertextBytes'],
  pulse: ['heartbeatLimit', 'suggestedCadenceSeconds', 'minimumGraceSeconds'],
} as const

const planFields = {
  planId: PlanId,
  priceSats: Count,
  durationLabel: Type.String(),
  bestFor: Type.String(),
  available: Type.Boolean(),
}

const product = (description: string, limits: readonly string[]) =>
  Type.Object(
    {
      description: Type.String(),
      plans: Type.Array(
        Type.Object({
          ...planFields,
          ...Object.fromEntries(limits.map((limit) => [limit, Count])),
        }),
      ),
    },
    { description },
  )

export const catalogTool = (way: Way): ToolDefinition<'catalog'> => ({
  name: 'catalog',
  title: 'List plans and prices',
  description: describe(way, {
    all: 'Lists what Mayfly sells over the Lightning network, without accounts: webhook inboxes (catch), client-encrypted secrets (whisper) and heartbeat monitors (pulse), each in three plans with price in satoshis, duration and limits. Costs nothing.',
  }),
  annotations: {
    readOnlyHint: true,
    destructiveHint: false,
    idempotentHint: true,
    openWorldHint: false,
  },
  inputSchema: Type.Object({}, { additionalProperties: false }),
  outputSchema: Type.Object({
    checkoutEnabled: Type.Boolean({ description: 'Whether a purchase is possible now' }),
    currency: Type.Literal('sat'),
    network: Type.Optional(Network),
    products: Type.Object({
      catch: Type.Optional(product('Webhook inboxes', PLAN_LIMITS.catch)),
      whisper: Type.Optional(product('Encrypted secrets', PLAN_LIMITS.whisper)),
      pulse: Type.Optional(product('Heartbeat monitors', PLAN_LIMITS.pulse)),
    }),
  }),
})
