/**
 * Removes fields that could carry a secret from a log line, should one ever be logged. Wildcard paths of pino's
 * own `redact` would do the same, but parse their list again for every value of every line.
 */

/** Removed from what a line has, such as an error. */
const REDACTED_INSIDE = new Set([
  'headers',
  'authorization',
  'bolt11',
  'preimage',
  'payment-preimage',
  'x-owner-token',
])

/** Removed where they stand in the line itself, or in what a logger adds to each of its lines. */
export const REDACTED = ['req', 'res', 'body', ...REDACTED_INSIDE].map((name) => `["${name}"]`)

/** The facts of a line, without what its objects, such as an error, must not show. */
export function withoutSecrets(facts: Record<string, unknown>): Record<string, unknown> {
  let shown = facts
  for (const [name, value] of Object.entries(facts)) {
    if (typeof value !== 'object' || value === null) continue
    if (!Object.keys(value).some((key) => REDACTED_INSIDE.has(key))) continue
    shown = { ...shown, [name]: withoutSecretsInside(value) }
  }
  return shown
}

/** A copy, so that an error is still written with its type and stack. */
function withoutSecretsInside(value: object): object {
  const copy = Object.create(Object.getPrototypeOf(value))
  for (const [name, { enumerable }] of Object.entries(Object.getOwnPropertyDescriptors(value))) {
    if (REDACTED_INSIDE.has(name)) continue
    // Read from the original: the stack of an error is a getter that answers for errors only.
    Object.defineProperty(copy, name, {
      value: Reflect.get(value, name),
      enumerable: enumerable === true,
    })
  }
  return copy
}
