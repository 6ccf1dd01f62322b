/** Checks a node's JSON: a missing field or a wrong type is the node's mistake. */
import { isObject } from '../../lib/json.ts'
import { NodeError } from './error.ts'

export type Fields = Record<string, unknown>

/** Readers for the answers of the node with this name. They throw a `malformed` NodeError. */
export function jsonOf(node: string) {
  const malformed = (what: string) => new NodeError(node, what, { reason: 'malformed' })

  function object(value: unknown): Fields {
    if (isObject(value)) return value
    throw malformed('an answer is not an object')
  }

  return {
    malformed,
    object,

    /** The object in a JSON text. */
    parse(text: string): Fields {
      let value: unknown
      try {
        value = JSON.parse(text)
      } catch {
        throw malformed('an answer is not JSON')
      }
      return object(value)
    },

    string(fields: Fields, name: string): string {
      const value = fields[name]
      if (typeof value !== 'string') throw malformed(`${name} is missing`)
      return value
    },

    /** A field of 64 hex digits in lower case. */
    hash(fields: Fields, name: string): string {
      const value = fields[name]
      if (typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)) return value
      throw malformed(`${name} is not a hash`)
    },

    boolean(fields: Fields, name: string): boolean {
      const value = fields[name]
      if (typeof value !== 'boolean') throw malformed(`${name} is missing`)
      return value
    },

    /** A field with an integer that is not negative, or undefined if the field is missing. */
    count(fields: Fields, name: string): number | undefined {
      const value = fields[name]
      if (value === undefined || value === null) return undefined
      if (Number.isSafeInteger(value) && Number(value) >= 0) return Number(value)
      throw malformed(`${name} is not a count`)
    },
  }
}

/** The id of a node, which is the public key that signs its invoices: 66 lower-case hex digits. Null for any other value. */
export function nodeIdOf(value: unknown): string | null {
  const text = typeof value === 'string' ? value.toLowerCase() : ''
  return /^0[23][0-9a-f]{64}$/.test(text) ? text : null
}
