/** A node's own name: the public key that signs its invoices, as its answers spell it. */

/** 66 hex digits in lower case, or null for anything else: who it is is then not known. */
export function nodeIdOf(value: unknown): string | null {
  const text = typeof value === 'string' ? value.toLowerCase() : ''
  return /^0[23][0-9a-f]{64}$/.test(text) ? text : null
}
