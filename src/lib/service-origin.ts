/**
 * The origin of the http or https address of a service; null for a text that is none, and for an address with a path,
 * a query or a password. An origin has none of the line breaks without which a URL is read: they could steer what uses
 * it as text, such as `curl -K`.
 */
export function serviceOrigin(text: string): string | null {
  if (!URL.canParse(text)) return null
  const { protocol, origin, pathname, username, password, search, hash } = new URL(text)
  if (!/^https?:$/.test(protocol)) return null
  return pathname + username + password + search + hash === '/' ? origin : null
}
