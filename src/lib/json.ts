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

/** A character as JSON escapes it, in which the text stays the same text. */
export const jsonEscape = (codePoint: number): string =>
  String.fromCodePoint(codePoint)
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')

/** JSON in visible ASCII alone, for a header. */
export const asciiJson = (value: object): string =>
  JSON.stringify(value).replaceAll(/[^ -~]/gu, (character) =>
    jsonEscape(character.codePointAt(0) ?? 0),
  )

/** What JSON from a client may have outside of its strings: a parser makes up to one value of each sign. */
export const MAX_JSON = { signs: 2_000, depth: 32 }

/**
 * The same, for what a client decides by: undefined also if it is larger than `MAX_JSON`, or if an object has a
 * member twice. Parsers disagree about which one counts, so a proxy could have checked another value than the one
 * that is used.
 */
export function parseStrictJsonBytes(bytes: Uint8Array): unknown {
  if (signsOfJson(bytes) === null) return undefined
  const text = utf8Text(bytes)
  const value = text === null ? undefined : parseJson(text)
  return text === null || value === undefined || repeatsMember(text) ? undefined : value
}

/**
 * Counts `{ } [ ] , :` outside of strings, on the bytes, before a parser makes values of them. Null if JSON is larger
 * than `MAX_JSON`.
 */
export function signsOfJson(json: Uint8Array): number | null {
  let [signs, depth] = [0, 0]
  let isInString = false
  for (let i = 0; i < json.length; i++) {
    const byte = json[i]
    if (byte === QUOTE) isInString = !isInString
    else if (isInString) {
      if (byte === BACKSLASH) i++
    } else if (byte === OBJECT || byte === ARRAY || byte === END_OBJECT || byte === END_ARRAY) {
      depth += byte === OBJECT || byte === ARRAY ? 1 : -1
      signs++
    } else if (byte === COMMA || byte === COLON) signs++
    if (signs > MAX_JSON.signs || depth > MAX_JSON.depth) return null
  }
  return signs
}

/** Structural signs in ASCII, which is what they are in UTF-8. */
const [OBJECT, END_OBJECT, ARRAY, END_ARRAY, COMMA, COLON, QUOTE, BACKSLASH] = [
  0x7b, 0x7d, 0x5b, 0x5d, 0x2c, 0x3a, 0x22, 0x5c,
]

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
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text[end - 1 - backslashes] === '\\') backslashes++
    if (backslashes % 2 === 0) return end
  }
}
