/** Bytes as text, in the charset that their sender names. */
import { utf8Text } from '../../lib/bytes.ts'
import type { Media } from './media.ts'

export type DecodedText = {
  text: string
  /** What to say about how it was read; null if it is plain UTF-8. */
  remark: string | null
}

/** The text, or null if the bytes are none. */
export function textOf(bytes: Uint8Array, { type, charset }: Media): DecodedText | null {
  if (charset !== undefined && !/^(?:utf-?8|us-ascii|ascii)$/i.test(charset)) {
    const named = inCharset(bytes, charset)
    if (named) return named
  }
  const mark = markOf(bytes)
  if (mark !== null) return inCharset(bytes, mark)
  const plain = utf8Text(bytes)
  if (plain !== null) {
    const isUnknown = charset !== undefined && decoderFor(charset) === null
    return {
      text: plain.replace(/^\ufeff/, ''),
      remark: isUnknown ? 'This browser does not know its charset. Read as UTF-8.' : null,
    }
  }
  // Someone who says that it is text may have forgotten to say in which charset. Text has no zero bytes.
  const isText = /^text\/|[/+](?:json|xml)$/.test(type) && !bytes.includes(0)
  return isText ? inCharset(bytes, 'utf-8') : null
}

function inCharset(bytes: Uint8Array, charset: string): DecodedText | null {
  const strict = decoderFor(charset, true)
  if (!strict) return null
  const name = strict.encoding
  try {
    return { text: strict.decode(bytes), remark: name === 'utf-8' ? null : `Read as ${name}.` }
  } catch {
    const text = decoderFor(charset)?.decode(bytes) ?? ''
    return {
      text,
      remark: `Read as ${name}, but some of its bytes are not: each is shown as \ufffd.`,
    }
  }
}

function decoderFor(charset: string, fatal = false): TextDecoder | null {
  try {
    return new TextDecoder(charset, { fatal })
  } catch {
    return null
  }
}

/** The charset of a byte order mark that is not that of UTF-8. */
function markOf([first, second]: Uint8Array): string | null {
  if (first === 0xff && second === 0xfe) return 'utf-16le'
  return first === 0xfe && second === 0xff ? 'utf-16be' : null
}
