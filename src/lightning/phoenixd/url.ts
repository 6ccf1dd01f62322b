/** `MAYFLY_LIGHTNING_URL` for phoenixd: `phoenixd+http://:<password>@host:9740`. */
import { parseNodeUrl, readCertificate, SETTING, wrongUrl } from '../node/url.ts'

export type PhoenixdAccess = {
  baseUrl: string
  password: string
  /** The PEM of the certificate, if phoenixd is behind a proxy that has its own. */
  certificate: string | undefined
}

const FORM = {
  expected: 'phoenixd+http://:<password>@host:9740',
  schemes: ['phoenixd+http:', 'phoenixd+https:'],
  parameters: ['cert'],
  hasPassword: true,
} as const
const DEFAULT_PORT = 9740

/**
 * Reads the URL, and the file that `cert` names.
 * @throws Error that names the setting and the wrong part.
 */
export async function readPhoenixdUrl(text: string, setting = SETTING): Promise<PhoenixdAccess> {
  const form = { ...FORM, setting }
  const url = parseNodeUrl(text, form)
  const scheme = url.protocol.slice('phoenixd+'.length)
  const password = decoded(url.password)
  if (!password) throw wrongUrl(form, 'has no password')
  if (scheme === 'http:' && url.searchParams.has('cert')) {
    throw wrongUrl(form, 'has a cert, which needs phoenixd+https')
  }
  return {
    baseUrl: `${scheme}//${url.hostname}:${url.port || DEFAULT_PORT}`,
    password,
    certificate: await readCertificate(form, url),
  }
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}
