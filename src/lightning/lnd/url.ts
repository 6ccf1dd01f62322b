/** `MAYFLY_LIGHTNING_URL` for LND: `lnd+https://host:8080?macaroon=<file>&cert=<file>`. */
import { hex, utf8Text } from '../../lib/bytes.ts'
import { type RestUrl, readRestUrl, SETTING } from '../node/url.ts'

export type LndAccess = Omit<RestUrl, 'secret'> & {
  /** In hex. It needs invoices:read, invoices:write and info:read. */
  macaroon: string
}

/** @throws Error that names the setting and the wrong part. */
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

// Every request carries the macaroon in a header, and the node accepts at most 1 MiB of headers.
const MAX_MACAROON_BYTES = 16 * 1024

/** The macaroon in hex. The file holds LND's binary format, or hex. */
function readMacaroon(bytes: Uint8Array): string | null {
  const text = utf8Text(bytes)?.trim() ?? ''
  const macaroon = /^([0-9a-fA-F]{2})+$/.test(text) ? text.toLowerCase() : hex(bytes)
  // LND writes only version 2 of the binary format, which begins with this byte.
  return macaroon.startsWith('02') && macaroon.length <= 2 * MAX_MACAROON_BYTES ? macaroon : null
}
