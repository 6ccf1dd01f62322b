/** The simulator over HTTP: the payer's side, and who may use a local one. Mounted with that backend only. */

import type { IncomingMessage } from 'node:http'
import { named, Type } from '../../lib/json-schema.ts'
import type { Log } from '../../lib/log.ts'
import type { Simulator } from '../../lightning/simulator.ts'
import { isLoopbackHost } from '../../protocol/ip-address.ts'
import type { App } from '../app.ts'
import { PROXY_HEADERS } from '../client-address.ts'
import { problem } from '../errors.ts'
import { BODY_ERRORS, errors, PaymentHash } from '../schemas.ts'

/** Longer than any BOLT 11 invoice in use. */
const MAX_INVOICE_CHARACTERS = 4096

const SimulatedPayment = Type.Object(
  {
    bolt11: Type.String({
      minLength: 1,
      maxLength: MAX_INVOICE_CHARACTERS,
      description: 'The invoice to pay',
    }),
  },
  {
    additionalProperties: false,
    examples: [{ bolt11: 'lnbcrt1u1p...' }],
    'x-schema': 'SimulatedPayment',
  },
)

const SimulatedProof = named('SimulatedProof', 'Paid, and the order is settled', {
  preimage: Type.String({
    description: 'The proof of the payment: 64 hex digits',
    examples: ['7f83b1657ff1fc53b92dc18148a1d65dfc2d4b1fa3d677284addd200126d9069'],
  }),
  paymentHash: PaymentHash,
})

/** @throws Problem for a request that did not come from this machine by its own name. */
export type RefuseStrangers = (request: IncomingMessage) => void

/** A forgotten setting behind a proxy on this machine must not give everything away. Logs the first refusal. */
export function createLocalOnly(log: Pick<Log, 'error'>): RefuseStrangers {
  let isLogged = false
  return (request) => {
    const isForwarded = PROXY_HEADERS.some((name) => request.headers[name] !== undefined)
    if (!isForwarded && isLoopbackHost(request.headers.host)) return
    if (!isLogged) log.error({ event: 'simulator.refused', reason: ADVICE })
    isLogged = true
    throw problem('simulator is local')
  }
}

const ADVICE =
  'the simulator takes no real money, and a request came through a proxy or by another name than localhost: set MAYFLY_LIGHTNING_URL to a real node; or, to give everything away, MAYFLY_TRUSTED_PROXIES to the addresses of your proxies, or MAYFLY_SIMULATOR=public'

/**
 * @param options.onPaid settles the order in the store. The payer gets the answer after that.
 * @param options.refuseStrangers for a local simulator.
 */
export function mountSimulator(
  app: App,
  {
    simulator,
    onPaid,
    refuseStrangers = () => undefined,
  }: {
    simulator: Simulator
    onPaid: (paymentHash: string) => Promise<void>
    refuseStrangers?: RefuseStrangers | undefined
  },
): void {
  app.post<{ Body: { bolt11: string } }>(
    '/simulator/pay',
    {
      schema: {
        tags: ['simulator'],
        operationId: 'payWithSimulator',
        summary: 'Pay an invoice of the simulator, once; a repeat gives the same preimage',
        description: 'Only a service on the simulator has it. No real money moves.',
        body: SimulatedPayment,
        response: {
          200: SimulatedProof,
          ...errors(
            ...BODY_ERRORS,
            'invoice expired',
            'not found',
            'simulator is local',
            'internal error',
          ),
        },
      },
    },
    async (request) => {
      refuseStrangers(request.raw)
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
