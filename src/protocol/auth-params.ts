/** The schemes and challenges of HTTP authentication (RFC 9110 §11). */

/** The lower-cased scheme that a field line starts with, or null. Says nothing about the rest. */
export function authScheme(fieldLine: string): string | null {
  const match = LEADING_SCHEME.exec(fieldLine)
  return match?.[1]?.toLowerCase() ?? null
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

const TCHAR = "[!#$%&'*+.^_`|~0-9A-Za-z-]"
const LEADING_SCHEME = new RegExp(`^[ \\t]*(${TCHAR}+)(?=[ \\t]|$)`)
const TOKEN = new RegExp(`^${TCHAR}+$`)
// No hyphens: one client's expression reads `x-foo` as `foo`.
const EMITTED_NAME = /^[a-z0-9_]+$/
const EMITTED_VALUE = /^[ !#-[\]-~]*$/
