/**
 * Collecting what an order sold, apart from its purchase request: the poll, by the order's id; and the recovery, by the
 * invoice and its preimage, for a buyer who has nothing else left.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { TSchema } from 'typebox'
import { isId } from '../../lib/ids.ts'
import { Type } from '../../lib/json-schema.ts'
import { renderPending } from '../../payment/flows/native.ts'
import type { Outcome } from '../../payment/order.ts'
import { MAX_INVOICE_CHARS } from '../../protocol/bolt11.ts'
import type { App } from '../app.ts'
import { idempotencyKey, invalidKey, preimageIn } from '../credentials.ts'
import { checkoutUnavailable, problem } from '../errors.ts'
import { RETRY_AFTER } from '../response-headers.ts'
import {
  answer,
  BODY_ERRORS,
  errors,
  keyHeader,
  ORDER_ERRORS,
  PendingPayment,
  SettledExtension,
  settledPayment,
} from '../schemas.ts'
import { paymentPreimageHeader } from './described.ts'
import { sendDelivered } from './flows.ts'
import { type Paying, takeGuess, takeRepeat } from './paid.ts'

/** A client may poll a pending order again after this. */
const POLL_SECONDS = 1

/** An invoice behind `lightning:`, with spaces around it. */
const MAX_COPIED_CHARS = MAX_INVOICE_CHARS + 100

const PaidInvoice = Type.Object(
  {
    bolt11: Type.String({
      minLength: 1,
      maxLength: MAX_COPIED_CHARS,
      description: 'The whole invoice, in either case, with or without `lightning:`',
    }),
    preimage: Type.String({
      pattern: '^[0-9a-fA-F]{64}$',
      description: '64 hex digits: what the wallet shows as the preimage or proof of the payment',
    }),
  },
  {
    additionalProperties: false,
    examples: [
      {
        bolt11: 'lnbcrt1u1p...',
        preimage: '7f83b1657ff1fc53b92dc18148a1d65dfc2d4b1fa3d677284addd200126d9069',
      },
    ],
    'x-schema': 'PaidInvoice',
  },
)

type Deps = Pick<Paying, 'orders' | 'limits' | 'clientAddress'> & { resources: TSchema[] }

export function mountPayments(app: App, deps: Deps): void {
  mountPoll(app, deps)
  mountRecovery(app, deps)
}

/**
 * Mounts the poll of an order that sells a capability, and that of an extension, whose answer has another form. Both
 * answer for every order: a buyer who polls at the other address has paid as well.
 */
function mountPoll(app: App, deps: Deps): void {
  const poll = async (
    request: FastifyRequest<{ Params: { orderId: string } }>,
    reply: FastifyReply,
  ): Promise<FastifyReply> => {
    const hasKey = request.headers['idempotency-key'] !== undefined
    const key = idempotencyKey(request)
    if (hasKey && key === null) throw invalidKey()
    const { orderId } = request.params
    if (!isId('order', orderId)) throw problem('order not found')
    const isPrefetch = /\bprefetch\b/i.test(String(request.headers['sec-purpose'] ?? ''))
    const outcome = await deps.orders.poll(orderId, {
      key,
      isPrefetch,
      preimage: preimageIn(request),
      // Orders that do not exist have no bucket: a client could fill the memory with invented ids.
      admit: (shown) => takeRepeat({ request, reply }, { orderId, ...shown }, deps),
    })
    if (outcome.kind !== 'pending') return collected(reply, outcome)
    return reply.code(402).header('retry-after', POLL_SECONDS).send(renderPending(outcome.quote))
  }

  app.get(
    '/api/payments/:orderId',
    {
      schema: {
        ...about,
        operationId: 'pollOrder',
        summary: 'Poll an order; the settled capability is returned once',
        description:
          'About once a second, until it is 200. Without a key the capability is in one answer alone, so save it; with the key of the order the answer can be repeated until its first use. An extension is polled at `/api/extensions/{orderId}`.',
        response: {
          ...answers,
          200: answer(settledPayment(deps.resources), {
            description: 'Paid: the capability. Save it; a plain poll gets it once',
          }),
        },
      },
    },
    poll,
  )
  app.get(
    '/api/extensions/:orderId',
    {
      schema: {
        ...about,
        isInWholeOnly: true,
        operationId: 'pollExtension',
        summary: 'Poll the order of an extension',
        description:
          'About once a second, until it is 200. If what it was to extend had ended before the payment, the order sold a new one, and its capability is in the answer.',
        response: {
          ...answers,
          200: answer(settledOrder(deps.resources), {
            description: 'Paid: the new end, or a new capability if the old one had ended',
          }),
        },
      },
    },
    poll,
  )
}

/** What any order has come to, once it is paid. */
const settledOrder = (resources: TSchema[]) =>
  Type.Union([SettledExtension, settledPayment(resources)], { 'x-schema': 'SettledOrder' })

const about = {
  tags: ['payments'],
  params: Type.Object({
    orderId: Type.String({
      description: 'Of the quote',
      examples: ['order_5jW9mNf2XbA7qRkT0cLz3H'],
    }),
  }),
  headers: Type.Object({
    'idempotency-key': Type.Optional(
      keyHeader('Proves the buyer: the answer can then be repeated'),
    ),
    'payment-preimage': paymentPreimageHeader,
  }),
}

const answers = {
  402: answer(PendingPayment, {
    description: 'Not paid yet. Ask again after `Retry-After`',
    headers: RETRY_AFTER,
  }),
  ...errors('invalid idempotency key', ...ORDER_ERRORS),
}

/** Both are in the body alone, because addresses and headers are logged by others. */
function mountRecovery(app: App, { orders, limits, clientAddress, resources }: Deps): void {
  const path = '/api/payments/recover'
  app.post<{ Body: { bolt11: string; preimage: string } }>(
    path,
    {
      schema: {
        tags: ['payments'],
        isInWholeOnly: true,
        operationId: 'recoverPurchase',
        summary: 'Collect a paid purchase by its whole invoice and the preimage of the payment',
        description:
          'For a buyer who has nothing else left: no key, no order id. The answer is that of the poll.',
        body: PaidInvoice,
        response: {
          200: answer(settledOrder(resources), {
            description: 'The capability, or the new end. Save it before anything else',
          }),
          ...errors(
            ...BODY_ERRORS,
            // It comes with the proof.
            ...ORDER_ERRORS.filter((phrase) => phrase !== 'proof of payment required'),
          ),
        },
      },
    },
    async (request, reply) => {
      const { bolt11, preimage } = request.body
      const guess = () => takeGuess({ request, reply }, { limits, clientAddress })
      return collected(reply, await orders.recover(bolt11, preimage, guess))
    },
  )

  // The pattern of the poll would take this for the id of an order.
  app.get(path, { config: { isRefused: true } }, async () => {
    throw problem('method not allowed', { allow: 'POST' })
  })
}

/** Sends what an order has come to. @throws Problem if it delivers nothing. */
function collected(reply: FastifyReply, outcome: Outcome): FastifyReply {
  switch (outcome.kind) {
    case 'delivered':
      return sendDelivered(reply, outcome.body)
    case 'pending':
    case 'checkout unavailable':
    case 'invalid credential':
      throw checkoutUnavailable()
    default:
      throw problem(outcome.kind)
  }
}
