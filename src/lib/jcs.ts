/** JSON Canonicalization Scheme (RFC 8785): one JSON text for one value, to hash and to sign. */

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json | undefined }

/**
 * The canonical text: no spaces, members sorted by UTF-16 code units, undefined members left out.
 * JSON.stringify already writes numbers and strings as RFC 8785 §3.2.2 requires.
 * @throws TypeError for a number that JSON cannot hold, or a lone surrogate.
 */
export function jcs(value: Json): string {
  if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError('not a JSON number')
  if (typeof value === 'string') return text(value)
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(jcs).join(',')}]`
  const members: string[] = []
  for (const name of Object.keys(value).sort()) {
    const member = value[name]
    if (member !== undefined) members.push(`${text(name)}:${jcs(member)}`)
  }
  return `{${members.join(',')}}`
}

function text(value: string): string {
  if (!value.isWellFormed()) throw new TypeError('a lone surrogate has no canonical form')
  return JSON.stringify(value)
}
