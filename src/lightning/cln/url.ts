/** `MAYFLY_LIGHTNING_URL` for Core Lightning: `cln+https://host:3010?rune=<file>&cert=<file>`. */
import { utf8Text } from '../../lib/bytes.ts'
import {
  parseNodeUrl,
  readCertificate,
  readNamedFile,
  readPrivate,
  SETTING,
  type UrlForm,
  wrongUrl,
} from '../node/url.ts'

export type ClnAccess = {
  baseUrl: string
  rune: string
  /** PEM of clnrest's own authority (`ca.pem`); the system's roots without it. */
  certificate: string | undefined
  /** Puts hints to private channels into invoices, also where there are public ones. */
  private: boolean
}

const FORM = {
  expected: 'cln+https://host:3010?rune=<file>&cert=<file>',
  schemes: ['cln+https:'],
  parameters: ['rune', 'cert', 'private'],
}
const DEFAULT_PORT = 3010
const MAX_RUNE_CHARACTERS = 16 * 1024

/**
 * Reads the URL and the files that it names.
 * @throws Error that names the setting and the piece that is wrong.
 */
export async function readClnUrl(text: string, setting = SETTING): Promise<ClnAccess> {
  const form = { ...FORM, setting }
  const url = parseNodeUrl(text, form)
  const runeFile = url.searchParams.get('rune')
  if (!runeFile) throw wrongUrl(form, 'names no rune')
  const isPrivate = readPrivate(form, url)
  return {
    baseUrl: `https://${url.hostname}:${url.port || DEFAULT_PORT}`,
    rune: readRune(form, await readNamedFile(form, 'rune', runeFile)),
    certificate: await readCertificate(form, url),
    private: isPrivate,
  }
}

/** The rune itself, or the answer of `lightning-cli createrune` as it is. */
function readRune({ setting }: UrlForm, bytes: Uint8Array): string {
  const text = utf8Text(bytes)?.trim() ?? ''
  const rune = /"rune"\s*:\s*"([^"]+)"/.exec(text)?.[1] ?? text
  if (!/^[A-Za-z0-9_-]{40,}={0,2}$/.test(rune) || rune.length > MAX_RUNE_CHARACTERS) {
    throw new Error(`${setting}: the rune file holds no rune`)
  }
  return rune
}
