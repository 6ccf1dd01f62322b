/** `MAYFLY_LIGHTNING_URL` for LND: `lnd+https://host:8080?macaroon=<file>&cert=<file>`. */
import { hex, utf8Text } from '../../lib/bytes.ts'
import {
  parseNodeUrl,
  readCertificate,
  readNamedFile,
  readPrivate,
  SETTING,
  type UrlForm,
  wrongUrl,
} from '../node/url.ts'
import type { LndOptions } from './lnd.ts'

export type LndAccess = Pick<LndOptions, 'baseUrl' | 'macaroon' | 'certificate'> & {
  private: boolean
}

const FORM = {
  expected: 'lnd+https://host:8080?macaroon=<file>&cert=<file>',
  schemes: ['lnd+https:'],
  parameters: ['macaroon', 'cert', 'private'],
}
const DEFAULT_PORT = 8080

// Every request carries it in a header, and the node takes 1 MiB of those at most.
const MAX_MACAROON_BYTES = 16 * 1024

/**
 * Reads the URL and the files that it names. `cert` is left out for a node whose certificate the
 * system trusts; `private=1` asks for route hints, which a node without public channels needs.
 * @throws Error that names the setting and the piece that is wrong.
 */
export async function readLndUrl(text: string, setting = SETTING): Promise<LndAccess> {
  const form = { ...FORM, setting }
  const url = parseNodeUrl(text, form)
  const macaroonFile = url.searchParams.get('macaroon')
  if (!macaroonFile) throw wrongUrl(form, 'names no macaroon')
  return {
    baseUrl: `https://${url.hostname}:${url.port || DEFAULT_PORT}`,
    macaroon: readMacaroon(form, await readNamedFile(form, 'macaroon', macaroonFile)),
    certificate: await readCertificate(form, url),
    private: readPrivate(form, url),
  }
}

/** Hex of the file, which is LND's own binary or its hex. */
function readMacaroon({ setting }: UrlForm, bytes: Uint8Array): string {
  const text = utf8Text(bytes)?.trim() ?? ''
  const macaroon = /^([0-9a-fA-F]{2})+$/.test(text) ? text.toLowerCase() : hex(bytes)
  // Version 2 of the binary format, the only one that LND writes.
  if (!macaroon.startsWith('02') || macaroon.length > 2 * MAX_MACAROON_BYTES) {
    throw new Error(`${setting}: the macaroon file holds no macaroon, binary or hex`)
  }
  return macaroon
}
