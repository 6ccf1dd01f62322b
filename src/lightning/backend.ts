/** The kinds of Lightning backends, by the scheme of their URL. */

export type Backend = 'simulator' | 'lnd' | 'phoenixd' | 'cln' | 'nwc'

const SCHEMES: Record<string, Backend> = {
  'lnd+https:': 'lnd',
  'phoenixd+http:': 'phoenixd',
  'phoenixd+https:': 'phoenixd',
  'cln+https:': 'cln',
  'nostr+walletconnect:': 'nwc',
}

/** The forms of the URLs, as people read them in messages. */
export const BACKEND_FORMS =
  '`simulator:`, `lnd+https://host:8080?macaroon=<file>&cert=<file>`, ' +
  '`phoenixd+http://:<password>@host:9740`, `cln+https://host:3010?rune=<file>&cert=<file>` ' +
  'or `nostr+walletconnect://…`'

/** The backend that a URL asks for, or null where its scheme is unknown. */
export function backendOf(url: string): Backend | null {
  if (url === 'simulator:') return 'simulator'
  return SCHEMES[/^[a-z+]+:/.exec(url)?.[0] ?? ''] ?? null
}
