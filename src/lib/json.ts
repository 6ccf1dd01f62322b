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

/**
 * The same, for what a client decides by: undefined also if an object has a member twice. Parsers disagree about
 * which one counts, so a proxy could have checked another value than the one that is used.
 */
export function parseStrictJsonBytes(bytes: Uint8Array): unknown {
  const text = utf8Text(bytes)
  const value = text === null ? undefined : parseJson(text)
  return text === null || value === undefined || repeatsMember(text) ? undefined : value
}

/** Whether an object in a valid JSON text has two members of one name, however they are escaped. */
function repeatsMember(text: string): boolean {
  /** The names in each open object; null for an open array. */
  const open: (Set<string> | null)[] = []
  let isName = false
  for (let i = 0; i < text.length; i++) {
    const sign = text[i]
    if (sign === '{') open.push(new Set())
    else if (sign === '[') open.push(null)
    else if (sign === '}' || sign === ']') open.pop()
    if (sign === '{' || sign === ',') isName = true
    if (sign !== '"') continue
    const end = endOfString(text, i)
    const names = open.at(-1)
    if (isName && names) {
      const name = JSON.parse(text.slice(i, end + 1))
      if (names.has(name)) return true
      names.add(name)
    }
    isName = false
    i = end
  }
  return false
}

/** Where the string that begins here ends. */
function endOfString(text: string, start: number): number {
  let i = start + 1
  while (text[i] !== '"') i += text[i] === '\\' ? 2 : 1
  return i
}
