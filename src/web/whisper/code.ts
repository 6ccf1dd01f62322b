/** Finds a share code in pasted text, and says what is wrong with one that is not whole. */
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
/** The lengths of the parts after the version: the id, the read token, the key. */
const LENGTHS = [30, 62, 43]
/** A message with a code is far shorter. */
const MAX_CHARS = 100_000

export function codeIn(pasted: string): Found {
  const text = pasted.slice(0, MAX_CHARS)
  const found = CODE.exec(text)?.[0] ?? ''
  const code =
    parseWhisperCode(found) ?? parseWhisperCode(BROKEN.exec(text.replaceAll(/\s/g, ''))?.[0] ?? '')
  return code ? { code } : { code: null, problem: problemWith(text, found) }
}

function problemWith(text: string, found: string): string {
  if (text.trim() === '') return 'Paste a share code first.'
  if (!text.includes(PREFIX)) {
    return 'This is not a share code. It begins with mayfly-whisper:1: and may be part of a message.'
  }
  if (isCut(text, found)) {
    return 'This share code is cut short. Copy all of it and paste it again.'
  }
  return 'There is a mistake in this share code. Copy it again from where it was sent.'
}

/** Whether the code ends too early: its parts are as they should be, up to one that is too short. */
function isCut(text: string, found: string): boolean {
  const end = text.slice(text.indexOf(PREFIX))
  if (found === '') return 'mayfly-whisper:1:'.startsWith(end.trim())
  const parts = found.slice('mayfly-whisper:1:'.length).split(':')
  const at = LENGTHS.findIndex((length, part) => (parts[part] ?? '').length !== length)
  return at !== -1 && at >= parts.length - 1 && (parts[at] ?? '').length < (LENGTHS[at] ?? 0)
}
