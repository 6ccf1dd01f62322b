/** URLs that a stranger chose and the service may call: https on port 443, to a name of the public internet. */

/** `host:port` of servers that are exempt from the rules for URLs: for tests. */
export type AllowedHosts = ReadonlySet<string>

/** Long enough for a signed callback. */
const MAX_URL_CHARS = 4096

/**
 * The URL without its fragment, or what is wrong with it, as a noun phrase. The code that connects checks
 * that the name resolves to a public address.
 */
export function readPublicUrl(
  text: string,
  allowed: AllowedHosts,
): { url: URL } | { fault: string } {
  const url = text.length <= MAX_URL_CHARS ? URL.parse(text) : null
  if (url === null) return { fault: 'not a URL' }
  if (url.username !== '' || url.password !== '') return { fault: 'a URL with credentials' }
  url.hash = ''
  if (!/^https?:$/.test(url.protocol)) return { fault: 'a URL that is not https' }
  if (allowed.has(hostAndPort(url))) return { url }
  if (url.protocol !== 'https:') return { fault: 'a URL that is not https' }
  if (url.port !== '') return { fault: 'a URL with another port than 443' }
  // IP addresses are refused, in every spelling that the URL parser accepts.
  return isPublicName(url.hostname) ? { url } : { fault: 'a URL whose host is not a public name' }
}

/** The `host:port` of a URL, as `AllowedHosts` spells it. */
export function hostAndPort(url: URL): string {
  return `${url.hostname}:${url.port || (url.protocol === 'https:' ? '443' : '80')}`
}

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
const MAX_NAME_CHARS = 253
/** RFC 6761, RFC 6762, RFC 8375, RFC 9476, and names that routers and companies use internally. */
const SPECIAL_SUFFIXES: ReadonlySet<string> = new Set([
  'localhost',
  'localdomain',
  'local',
  'internal',
  'intranet',
  'private',
  'lan',
  'home',
  'corp',
  'arpa',
  'test',
  'invalid',
  'example',
  'onion',
  'alt',
])

/** At least two labels; the last is not a number, which WHATWG URL would read as an IPv4 address. */
export function isPublicName(name: string): boolean {
  const labels = name.split('.')
  const last = labels.at(-1) ?? ''
  if (name.length > MAX_NAME_CHARS || labels.length < 2) return false
  if (!labels.every((label) => LABEL.test(label))) return false
  return !/^(?:\d+|0x[0-9a-f]*)$/.test(last) && !SPECIAL_SUFFIXES.has(last)
}
