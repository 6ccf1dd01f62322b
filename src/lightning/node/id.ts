/** The id of a node: the public key that signs its invoices. */

/** The id as 66 lower-case hex digits, or null for any other value. */
export function nodeIdOf(value: unknown): string | null {
  const text = typeof value === 'string' ? value.toLowerCase() : ''
  return /^0[23][0-9a-f]{64}$/.test(text) ? text : null
}
