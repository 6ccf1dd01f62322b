/** The poll: a buyer without a wallet protocol learns of the settlement and collects the capability. */
import type { TSchema } from 'typebox'
import { isId } from '../../lib/ids.ts'
import { renderPending } from '../../payment/flows/native.ts'
import type { App } from '../app.ts'
import { idempotencyKey, invalidKey } from '../credentials.ts'
import { checkoutUnavailable, problem } from '../errors.ts'
import { RETRY_AFTER } from '../response-headers.ts'
import {
  answer,
  Extended,
  errors,
  KEY_EXAMPLE,
  PendingPayment,
  settledPayment,
} from '../schemas.ts'
import { Type } from '../type.ts'
import { sendDelivered } from './flows.ts'
import type { Paying } from './paid.ts'
import { paymentPreimageHeader, preimageIn, takeRepeat } from './repeats.ts'

/** A client may poll a pending order again after this. */
const POLL_SECONDS = 1

export function mountPoll(
  app: App,
  deps: Pick<Paying, 'orders' | 'limits' | 'clientAddress'> & {
    resources: TSchema[]
  },
): void {
  app.get<{ Params: { orderId: string } }>(
    '/api/payments/:orderId',
    {
      schema: {
        tags: ['payments'],
        operationId: 'pollOrder',
        summary: 'Poll an order; the settled capability is returned once',
        params: Type.Object({
          orderId: Type.String({
            description: 'Of the quote',
            examples: ['order_5jW9mNf2XbA7qRkT0cLz3H'],
          }),
        }),
        headers: Type.Object({
          'idempotency-key': Type.Optional(
            Type.String({
              description: 'Proves the buyer: the answer can then be repeated',
              examples: [KEY_EXAMPLE],
            }),
          ),
          'payment-preimage': paymentPreimageHeader,
        }),
        response: {
          200: answer(Type.Union([settledPayment(deps.resources), Extended]), {
            description: 'Paid: the capability, or the new end. Save it; a plain poll gets it once',
          }),
          402: answer(PendingPayment, {
            description: 'Not paid yet. Ask again after `Retry-After`',
            headers: RETRY_AFTER,
          }),
          ...errors(
            'invalid idempotency key',
            'order not found',
            'order expired',
            'order refunded',
            'proof of payment required',
            'already delivered',
            'rate limited',
            'internal error',
            'checkout unavailable',
          ),
        },
      },
    },
    async (request, reply) => {
      const hasKey = request.headers['idempotency-key'] !== undefined
      const key = idempotencyKey(request)
      if (hasKey && key === null) throw invalidKey()
      const { orderId } = request.params
      if (!isId('order', orderId)) throw problem('order not found')
      const isPrefetch = /\bprefetch\b/i.test(String(request.headers['sec-purpose'] ?? ''))
      const outcome = await deps.orders.poll(orderId, {
        ...{ key, isPrefetch, preimage: preimageIn(request) },
        // Orders that do not exist have no bucket: a client could fill the memory with invented ids.
        admit: (shown) => takeRepeat({ request, reply }, { orderId, ...shown }, deps),
      })
      switch (outcome.kind) {
        case 'pending':
          return reply
            .code(402)
            .header('retry-after', POLL_SECONDS)
            .send(renderPending(outcome.quote))
        case 'delivered':
          return sendDelivered(reply, outcome.body)
        case 'checkout unavailable':
        case 'invalid credential':
          throw checkoutUnavailable()
        default:
          throw problem(outcome.kind)
      }
    },
  )
}
