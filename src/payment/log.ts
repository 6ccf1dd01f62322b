/** The log as payment uses it: an event name and facts, never a body, token, key or preimage. */
export type PaymentLog = {
  info(facts: { event: string } & Record<string, unknown>): void
  warn(facts: { event: string } & Record<string, unknown>): void
  error(facts: { event: string } & Record<string, unknown>): void
}

/** What an error says, for the log. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
