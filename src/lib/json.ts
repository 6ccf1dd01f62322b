/** JSON from outside: reading it never throws. */
import { utf8Text } from './bytes.ts'

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value of a JSON text; undefined, which is never a JSON value, if it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The value of JSON in UTF-8; undefined if the bytes are anything else. */
export function parseJsonBytes(bytes: Uint8Array): unknown {
  const text = utf8Text(bytes)
  return text === null ? undefined : parseJson(text)
}

/** The JSON object in a text; null if the text is anything else. */
export function objectIn(text: string): Record<string, unknown> | null {
  const value = parseJson(text)
  return isObject(value) ? value : null
}
