/** `MAYFLY_LIGHTNING_URL` for Core Lightning: `cln+https://host:3010?rune=<file>&cert=<file>`. */
import { utf8Text } from '../../lib/bytes.ts'
import { type RestUrl, readRestUrl, SETTING } from '../node/url.ts'

export type ClnAccess = Omit<RestUrl, 'secret'> & { rune: string }

/** @throws Error that names the setting and the wrong part. */
export async function readClnUrl(text: string, setting = SETTING): Promise<ClnAccess> {
  const { secret: rune, ...access } = await readRestUrl(text, {
    setting,
    expected: 'cln+https://host:3010?rune=<file>&cert=<file>',
    schemes: ['cln+https:'],
    defaultPort: 3010,
    secret: 'rune',
    contents: 'rune',
    readSecret: readRune,
  })
  return { ...access, rune }
}

const MAX_RUNE_CHARACTERS = 16 * 1024

/** The file holds the rune, or the whole output of `lightning-cli createrune`. */
function readRune(bytes: Uint8Array): string | null {
  const text = utf8Text(bytes)?.trim() ?? ''
  const rune = /"rune"\s*:\s*"([^"]+)"/.exec(text)?.[1] ?? text
  const isRune = /^[A-Za-z0-9_-]{40,}={0,2}$/.test(rune) && rune.length <= MAX_RUNE_CHARACTERS
  return isRune ? rune : null
}
