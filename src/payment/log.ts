import type { OrderRow } from './store.ts'

/**
 * What a line of the log may say: never a body, token, key or preimage. An order id collects an order
 * that was not delivered yet, so no line has one: it names its order by the payment hash, which opens
 * nothing.
 */
type Facts = { event: string; orderId?: never; order_id?: never } & Record<string, unknown>

/** The log as payment uses it. */
export type PaymentLog = {
  info(facts: Facts): void
  warn(facts: Facts): void
  error(facts: Facts): void
}

/** How the log names an order. */
export const namedIn = (
  order: Pick<OrderRow, 'payment_hash' | 'product'>,
): { paymentHash: string | null; product: string } => ({
  paymentHash: order.payment_hash,
  product: order.product,
})
