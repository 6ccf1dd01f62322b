/** The kinds of Lightning backends, by the scheme of their URL. */

export type Backend = 'simulator' | 'lnd'

/** The backend that a URL asks for, or null where its scheme is none of ours. */
export function backendOf(url: string): Backend | null {
  if (url === 'simulator:') return 'simulator'
  return url.startsWith('lnd+https:') ? 'lnd' : null
}
