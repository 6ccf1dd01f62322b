/** The payer's side of the simulator. Mounted with that backend only. */

import type { Simulator } from '../lightning/simulator.ts'
import type { App } from './app.ts'
import { problem } from './errors.ts'
import { errors } from './schemas.ts'
import { Type } from './type.ts'

/** Longer than any BOLT 11 invoice in use. */
const MAX_INVOICE_CHARACTERS = 4096

const SimulatedPayment = Type.Object(
  { bolt11: Type.String({ minLength: 1, maxLength: MAX_INVOICE_CHARACTERS }) },
  {
    additionalProperties: false,
    examples: [{ bolt11: 'lnbcrt1u1p...' }],
    'x-schema': 'SimulatedPayment',
  },
)

const SimulatedProof = Type.Object(
  { preimage: Type.String(), paymentHash: Type.String() },
  { description: 'Paid, and the order is settled', 'x-schema': 'SimulatedProof' },
)

/** `onPaid` settles the order in the store. The payer gets the answer after that. */
export function mountSimulator(
  app: App,
  simulator: Simulator,
  onPaid: (paymentHash: string) => Promise<void>,
): void {
  app.post<{ Body: { bolt11: string } }>(
    '/simulator/pay',
    {
      schema: {
        tags: ['simulator'],
        operationId: 'payWithSimulator',
        summary: 'Pay an invoice of the simulator, once; a repeat gives the same preimage',
        body: SimulatedPayment,
        response: {
          200: SimulatedProof,
          ...errors(
            'invalid request body',
            'unsupported media type',
            'request too large',
            'invoice expired',
            'not found',
            'request timeout',
            'internal error',
          ),
        },
      },
      config: { invalid: { body: 'invalid request body' } },
    },
    async (request) => {
      const outcome = await simulator.pay(request.body.bolt11)
      switch (outcome.kind) {
        case 'paid':
          await onPaid(outcome.paymentHash)
          return { preimage: outcome.preimage, paymentHash: outcome.paymentHash }
        case 'unknown':
          throw problem('not found')
        case 'expired':
          throw problem('invoice expired')
      }
    },
  )
}
