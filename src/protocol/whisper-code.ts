/**
 * The share code of a WHISPER: everything that its reader needs, in one text that can be pasted. Its form is
 * `mayfly-whisper:1:<publicId>:<readToken>:<key>`, with `:p` at the end if a password is needed. It opens the
 * content, so it must be as secret as the content: never put it into a URL that a server sees.
 */
import { base64Bytes, base64url } from '../lib/bytes.ts'
import { isId, isToken } from '../lib/ids.ts'

/** The length of the key. It is here, because most pages read codes and never decrypt. */
export const KEY_BYTES = 32
/** No plan can sell more reads than this. */
export const MAX_READS = 402
const PREFIX = 'mayfly-whisper:1:'
/** The spelling of 32 bytes in base64url, without padding. */
const KEY = /^[A-Za-z0-9_-]{43}$/

/**
 * The parts of a share code: the whisper's id, the token that fetches its bytes, and the key that opens them.
 *
 * ```ts
 * const parts = parseWhisperCode(code)
 * if (parts?.hasPassword) console.log('ask for the password before the read is spent')
 * ```
 */
export type WhisperCode = {
  publicId: string
  readToken: string
  /** 32 bytes; opens the envelope, and the service has never seen it. */
  key: Uint8Array
  hasPassword: boolean
}

/**
 * The share code of these parts.
 *
 * ```ts
 * const code = formatWhisperCode({ publicId, readToken, key, hasPassword: false })
 * ```
 * @throws RangeError for a malformed part.
 */
export function formatWhisperCode({ publicId, readToken, key, hasPassword }: WhisperCode): string {
  const code = [publicId, readToken, base64url(key), ...(hasPassword ? ['p'] : [])].join(':')
  if (!parseWhisperCode(PREFIX + code)) throw new RangeError('not the parts of a share code')
  return PREFIX + code
}

/**
 * The parts of a share code, or null if the text is not exactly one share code.
 *
 * ```ts
 * if (parseWhisperCode(text) === null) console.log('that is no share code')
 * ```
 */
export function parseWhisperCode(text: string): WhisperCode | null {
  if (!text.startsWith(PREFIX)) return null
  const [publicId = '', readToken = '', keyText = '', flag, ...rest] = text
    .slice(PREFIX.length)
    .split(':')
  if (rest.length > 0 || (flag !== undefined && flag !== 'p')) return null
  if (!isId('whisper', publicId) || !isToken('whisper_read', readToken)) return null
  // Unused bits must be zero, so that one key has one spelling.
  const key = KEY.test(keyText) ? base64Bytes(keyText) : null
  return key?.length === KEY_BYTES ? { publicId, readToken, key, hasPassword: flag === 'p' } : null
}
