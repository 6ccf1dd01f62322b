/** Undoes a Content-Encoding, within bounds: a small body can unpack to gigabytes. */
import { concat } from '../../lib/bytes.ts'

export type Unpacked = {
  bytes: Uint8Array<ArrayBuffer>
  /** The encodings that were undone, such as `gzip`. */
  undone: readonly string[]
  /** What to say if not all of it could be undone; null if it was. */
  remark: string | null
}

/** More than an inbox stores in a body, and little enough for a phone. */
export const MAX_UNPACKED_BYTES = 8 * 1024 * 1024
/** A body that is packed more often is nonsense. */
const MAX_ENCODINGS = 4
const MAX_NAME_CHARACTERS = 20

/** The platform's name for each encoding (RFC 9110 §8.4.1), the likelier form first. */
const FORMATS: Record<string, readonly string[]> = {
  gzip: ['gzip'],
  'x-gzip': ['gzip'],
  // RFC 9110 means the zlib format. Some senders leave its frame out.
  deflate: ['deflate', 'deflate-raw'],
  br: ['brotli'],
  zstd: ['zstd'],
}

/** The encodings that a header names, in the order in which they were applied. */
export function encodingsOf(header: string | null): string[] {
  return (header ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '' && name !== 'identity')
}

export async function unpack(
  packed: Uint8Array<ArrayBuffer>,
  encodings: readonly string[],
  limit = MAX_UNPACKED_BYTES,
): Promise<Unpacked> {
  let bytes = packed
  const undone: string[] = []
  const stopped = (remark: string): Unpacked => ({ bytes, undone, remark })
  if (encodings.length > MAX_ENCODINGS)
    return stopped('It has too many encodings. Shown as it was sent.')
  for (const encoding of encodings.toReversed()) {
    let unpacked: Uint8Array<ArrayBuffer> | null = null
    for (const format of FORMATS[encoding] ?? []) {
      unpacked ??= await decompress(bytes, format, limit)
    }
    if (!unpacked) {
      const name = encoding.slice(0, MAX_NAME_CHARACTERS)
      return stopped(
        `This browser cannot unpack ${name}, or the data is damaged. Shown as it was sent.`,
      )
    }
    undone.push(encoding)
    bytes = unpacked.slice(0, limit)
    if (unpacked.length > limit) {
      return stopped('It is too large to unpack here: only its beginning is shown.')
    }
  }
  return { bytes, undone, remark: null }
}

/** Reads until the end or just beyond the limit. Null if it is damaged, or of a format that the browser does not know. */
async function decompress(
  bytes: Uint8Array<ArrayBuffer>,
  format: string,
  limit: number,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    const reader = new Blob([bytes])
      .stream()
      .pipeThrough(new DecompressionStream(format as CompressionFormat))
      .getReader()
    while (length <= limit) {
      const { done, value } = await reader.read()
      if (done) return concat(...chunks)
      chunks.push(value)
      length += value.length
    }
    // It may fail at what is left, which nobody asks for any more.
    void reader.cancel().catch(() => undefined)
    return concat(...chunks)
  } catch {
    return null
  }
}
