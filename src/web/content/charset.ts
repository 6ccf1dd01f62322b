/** Bytes as text, in the charset that their sender names. */
import type { Media } from './media.ts'

export type DecodedText = {
  text: string
  /** What to say about how it was read; null if it is plain UTF-8. */
  remark: string | null
}

/** The text, or null if the bytes are none. */
export function textOf(bytes: Uint8Array, { type, charset }: Media): DecodedText | null {
  const named = decoderFor(charset ?? markOf(bytes) ?? 'utf-8')
  const { encoding } = named ?? new TextDecoder()
  const remark = named
    ? `Read as ${encoding}`
    : 'This browser does not know its charset. Read as UTF-8'
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes)
    return { text, remark: named && encoding === 'utf-8' ? null : `${remark}.` }
  } catch {
    // Someone who says that it is text may be wrong about the charset. Text has no zero bytes.
    if (!/^text\/|[/+](?:json|xml)$/.test(type) || bytes.includes(0)) return null
    const text = new TextDecoder(encoding).decode(bytes)
    return { text, remark: `${remark}, but some of its bytes are not: each is shown as \ufffd.` }
  }
}

function decoderFor(charset: string): TextDecoder | null {
  try {
    return new TextDecoder(charset)
  } catch {
    return null
  }
}

/** The charset of a byte order mark that is not that of UTF-8. */
function markOf([first, second]: Uint8Array): string | null {
  if (first === 0xff && second === 0xfe) return 'utf-16le'
  return first === 0xfe && second === 0xff ? 'utf-16be' : null
}
