/** Finds a share code in pasted text, or says what is wrong with it. */
import { parseWhisperCode, type WhisperCode } from '../../protocol/whisper-code.ts'

export type Found = { code: WhisperCode; problem?: never } | { code: null; problem: string }

const PREFIX = 'mayfly-whisper:'
/** A share code inside of other text, such as a message. */
const CODE = /mayfly-whisper:1:[\w:-]+/
/**
 * A code and nothing else, where line breaks of a mail program may stand inside. Inside of a message, the words that
 * follow a cut code could be taken for the rest of its key, and a read would be used for nothing.
 */
const BROKEN = /^mayfly-whisper:1:whisper_\w{22}:whisper_read_\w{49}:[\w-]{43}(?::p)?$/
/** A message with a code is far shorter. */
const MAX_CHARS = 100_000

export function codeIn(pasted: string): Found {
  const text = pasted.slice(0, MAX_CHARS)
  const found = CODE.exec(text)?.[0] ?? ''
  const code =
    parseWhisperCode(found) ?? parseWhisperCode(BROKEN.exec(text.replaceAll(/\s/g, ''))?.[0] ?? '')
  if (code) return { code }
  const problem = text.includes(PREFIX)
    ? 'This share code is not whole, or has a mistake. Copy all of it again.'
    : 'This is not a share code. It begins with mayfly-whisper:1: and may be part of a message.'
  return { code: null, problem }
}
