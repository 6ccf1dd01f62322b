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
    const formats = FORMATS[encoding]?.filter(canDecompress)
    if (!formats?.length) {
      return stopped(`This browser cannot unpack ${shortened(encoding)}. Shown as it was sent.`)
    }
    const result = await firstThatFits(bytes, formats, limit)
    if (!result)
      return stopped(`It is not ${encoding}, although its header says so. Shown as it was sent.`)
    bytes = result.bytes
    undone.push(encoding)
    if (result.end !== 'whole') return stopped(ENDS[result.end])
  }
  return { bytes, undone, remark: null }
}

type Result = { bytes: Uint8Array<ArrayBuffer>; end: 'whole' | 'too large' | 'broken' }

const ENDS = {
  'too large': 'It is too large to unpack here: only its beginning is shown.',
  broken: 'Its packed data is damaged: only its beginning is shown.',
}

async function firstThatFits(
  bytes: Uint8Array<ArrayBuffer>,
  formats: readonly string[],
  limit: number,
): Promise<Result | null> {
  for (const format of formats) {
    const result = await decompress(bytes, format, limit)
    if (result.end !== 'broken' || result.bytes.length > 0) return result
  }
  return null
}

/** Reads until the end, an error or the limit. What came before counts. */
async function decompress(
  bytes: Uint8Array<ArrayBuffer>,
  format: string,
  limit: number,
): Promise<Result> {
  const stream = new Blob([bytes])
    .stream()
    .pipeThrough(new DecompressionStream(format as CompressionFormat))
  const reader = stream.getReader()
  const chunks: Uint8Array[] = []
  let length = 0
  const ended = (end: Result['end']): Result => ({ bytes: concat(...chunks).slice(0, limit), end })
  for (;;) {
    const read = await reader.read().catch(() => null)
    if (read === null) return ended('broken')
    if (read.done) return ended('whole')
    chunks.push(read.value)
    length += read.value.length
    if (length > limit) {
      await reader.cancel().catch(() => undefined)
      return ended('too large')
    }
  }
}

function canDecompress(format: string): boolean {
  try {
    return new DecompressionStream(format as CompressionFormat) !== null
  } catch {
    return false
  }
}

const shortened = (name: string): string => (name.length > 20 ? `${name.slice(0, 20)}…` : name)
