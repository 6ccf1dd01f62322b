/**
 * A log line never contains a body, token, key or preimage. It contains no order id either, because the id
 * can collect an order that was not delivered yet. `namedIn` in payment/order.ts names an order by its
 * payment hash, which opens nothing.
 */
type Facts = { event: string; orderId?: never; order_id?: never } & Record<string, unknown>

/** The log as all rooms below serve.ts use it. */
export type Log = {
  info(facts: Facts): void
  warn(facts: Facts): void
  error(facts: Facts): void
}
