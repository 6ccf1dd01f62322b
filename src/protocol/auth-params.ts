/**
 * HTTP authentication challenges and credentials (RFC 9110 §11), for server and browser alike.
 * Peers write these lines. A line that is only partly readable is refused: a payer must never act on half a
 * challenge.
 */

/** Scheme and parameter names are lower-cased, because both are case-insensitive. */
export type Challenge = { scheme: string; token68: string } | { scheme: string; params: AuthParams }

/** A Map, because a peer may name a parameter `__proto__`. */
export type AuthParams = ReadonlyMap<string, string>

/** Payment challenges of one answer take about 8 KiB. */
export const MAX_FIELD_CHARS = 65_536
/** Each distinct challenge costs a server an invoice, so servers send only a few. */
export const MAX_CHALLENGES = 16
/** Digest has the most parameters of the registered schemes: twelve. */
export const MAX_PARAMS = 32

/**
 * The challenges of all `WWW-Authenticate` field lines, or null if one of them is malformed. The lines count
 * as one list (RFC 9110 §5.3), because fetch returns them joined.
 */
export function parseChallenges(fieldLines: readonly string[]): Challenge[] | null {
  const text = fieldLines.join(', ')
  if (text.length > MAX_FIELD_CHARS) return null
  const challenges: Challenge[] = []
  let params: Map<string, string> | null = null
  let at = skip(LIST_GAP, text, 0)
  while (at < text.length) {
    const param = take(PARAM, text, at)
    if (param !== null) {
      if (params === null || !addParam(params, param)) return null
      at = skip(LIST_GAP, text, at + param[0].length)
      continue
    }
    const scheme = take(SCHEME, text, at)
    if (scheme === null || challenges.length === MAX_CHALLENGES) return null
    at += scheme[0].length
    const token68 = takeToken68(text, at)
    if (token68 === null) {
      params = new Map()
      challenges.push({ scheme: lower(scheme[1]), params })
      // Only a separator, the end or the first parameter may follow the scheme.
      if (at < text.length && text[at] !== ',' && take(PARAM, text, at) === null) return null
    } else {
      params = null
      challenges.push({ scheme: lower(scheme[1]), token68: token68[1] ?? '' })
      at += token68[0].length
    }
    at = skip(LIST_GAP, text, at)
  }
  return challenges
}

/** The credentials of one `Authorization` field line (RFC 9110 §11.4), or null if malformed. */
export function parseCredentials(fieldLine: string): Challenge | null {
  if (fieldLine.length > MAX_FIELD_CHARS) return null
  const simple = CREDENTIALS_TOKEN68.exec(fieldLine)
  if (simple !== null) return { scheme: lower(simple[1]), token68: simple[2] ?? '' }
  const [credentials, ...more] = parseChallenges([fieldLine]) ?? []
  // A token68 that only the list syntax accepts has stray commas around it.
  if (credentials === undefined || more.length > 0 || 'token68' in credentials) return null
  return credentials
}

/** The lower-cased scheme that a field line starts with, or null. Says nothing about the rest. */
export function authScheme(fieldLine: string): string | null {
  const match = LEADING_SCHEME.exec(fieldLine)
  return match === null ? null : lower(match[1])
}

/**
 * One challenge as one field line: lower-case names, quoted strings, `, ` between them. Several clients read
 * it with a regular expression that supports neither escapes nor other spacing.
 * @throws TypeError for a value that would need an escape: those clients would read a different value.
 */
export function serialiseChallenge(
  scheme: string,
  params: Readonly<Record<string, string | undefined>>,
): string {
  if (!TOKEN.test(scheme)) throw new TypeError('an auth-scheme must be a token')
  const written: string[] = []
  for (const [name, value] of Object.entries(params)) {
    if (value === undefined) continue
    if (!EMITTED_NAME.test(name)) throw new TypeError('an auth-param name must be lower-case')
    if (!EMITTED_VALUE.test(value)) throw new TypeError(`auth-param ${name} would need an escape`)
    written.push(`${name}="${value}"`)
  }
  return `${scheme} ${written.join(', ')}`
}

// Sticky expressions that take linear time. RFC 9110 §5.6.2 token, §5.6.4 quoted-string (with obs-text,
// because browsers decode fields as Latin-1), §11.2 token68 and BWS.
const TCHAR = "[!#$%&'*+.^_`|~0-9A-Za-z-]"
const QDTEXT = '[\\t !#-\\[\\]-~\\x80-\\xff]*'
const QUOTED = `"(${QDTEXT}(?:\\\\[\\t -~\\x80-\\xff]${QDTEXT})*)"`
const ELEMENT_END = '[ \\t]*(?=,|$)'
const LIST_GAP = /[ \t,]*/y
const PARAM = new RegExp(`(${TCHAR}+)[ \\t]*=[ \\t]*(?:(${TCHAR}+)|${QUOTED})${ELEMENT_END}`, 'y')
const SCHEME = new RegExp(`(${TCHAR}+)(?:[ \\t]+|(?=,|$))`, 'y')
const TOKEN68_TEXT = '[A-Za-z0-9._~+/-]+=*'
const TOKEN68 = new RegExp(`(${TOKEN68_TEXT})${ELEMENT_END}`, 'y')
const CREDENTIALS_TOKEN68 = new RegExp(`^[ \\t]*(${TCHAR}+)[ \\t]+(${TOKEN68_TEXT})[ \\t]*$`)
const LEADING_SCHEME = new RegExp(`^[ \\t]*(${TCHAR}+)(?=[ \\t]|$)`)
const TOKEN = new RegExp(`^${TCHAR}+$`)
// No hyphens: one client's expression reads `x-foo` as `foo`.
const EMITTED_NAME = /^[a-z0-9_]+$/
const EMITTED_VALUE = /^[ !#-[\]-~]*$/

function take(expression: RegExp, text: string, at: number): RegExpExecArray | null {
  expression.lastIndex = at
  return expression.exec(text)
}

function skip(expression: RegExp, text: string, at: number): number {
  return at + (take(expression, text, at)?.[0].length ?? 0)
}

/** `a=b` is a parameter although `a=` alone would be a token68, so the parameter is tried first. */
function takeToken68(text: string, at: number): RegExpExecArray | null {
  return take(PARAM, text, at) === null ? take(TOKEN68, text, at) : null
}

/** A name must occur only once in a challenge (RFC 9110 §11.2). */
function addParam(params: Map<string, string>, match: RegExpExecArray): boolean {
  const name = lower(match[1])
  if (params.has(name) || params.size === MAX_PARAMS) return false
  params.set(name, match[2] ?? (match[3] ?? '').replace(/\\(.)/g, '$1'))
  return true
}

function lower(text: string | undefined): string {
  return (text ?? '').toLowerCase()
}
