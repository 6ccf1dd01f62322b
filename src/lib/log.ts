/**
 * What a log line may say: never a body, token, key or preimage. Whoever has the id of an order that
 * was not delivered yet can collect it, so no line contains one: `namedIn` in payment/order.ts names an
 * order by its payment hash, which opens nothing.
 */
type Facts = { event: string; orderId?: never; order_id?: never } & Record<string, unknown>

/** The log as every room below serve.ts sees it. */
export type Log = {
  info(facts: Facts): void
  warn(facts: Facts): void
  error(facts: Facts): void
}
