/** `MAYFLY_LIGHTNING_URL` for LND: `lnd+https://host:8080?macaroon=<file>&cert=<file>`. */
import { hex, utf8Text } from '../../lib/bytes.ts'
import { type RestUrl, readRestUrl, SETTING } from '../node/url.ts'

export type LndAccess = Omit<RestUrl, 'secret'> & {
  /** Hex; it needs invoices:read, invoices:write and info:read. */
  macaroon: string
}

/** @throws Error that names the setting and the piece that is wrong. */
export async function readLndUrl(text: string, setting = SETTING): Promise<LndAccess> {
  const { secret: macaroon, ...access } = await readRestUrl(text, {
    setting,
    expected: 'lnd+https://host:8080?macaroon=<file>&cert=<file>',
    schemes: ['lnd+https:'],
    defaultPort: 8080,
    secret: 'macaroon',
    contents: 'macaroon, binary or hex',
    readSecret: readMacaroon,
  })
  return { ...access, macaroon }
}

// Every request carries it in a header, and the node takes 1 MiB of those at most.
const MAX_MACAROON_BYTES = 16 * 1024

/** Hex of the file, which is LND's own binary or its hex. */
function readMacaroon(bytes: Uint8Array): string | null {
  const text = utf8Text(bytes)?.trim() ?? ''
  const macaroon = /^([0-9a-fA-F]{2})+$/.test(text) ? text.toLowerCase() : hex(bytes)
  // Version 2 of the binary format, the only one that LND writes.
  return macaroon.startsWith('02') && macaroon.length <= 2 * MAX_MACAROON_BYTES ? macaroon : null
}
