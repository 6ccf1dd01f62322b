/** What a Content-Type says, and what the first bytes say. */

export type Media = {
  /** In lower case, without parameters; an empty text if none was sent. */
  type: string
  charset: string | undefined
}

const CHARSET = /;\s*charset\s*=\s*"?([^\s;"]+)/i

export function mediaOf(contentType: string | null): Media {
  const [type = ''] = contentType?.split(';', 1) ?? []
  return { type: type.trim().toLowerCase(), charset: CHARSET.exec(contentType ?? '')?.[1] }
}

/** Pictures of pixels, by their first bytes. Never SVG, which is a document with scripts. */
const PICTURES: readonly (readonly [type: string, at: number, bytes: string])[] = [
  ['image/png', 0, '\x89PNG\r\n\x1a\n'],
  ['image/jpeg', 0, '\xff\xd8\xff'],
  ['image/gif', 0, 'GIF87a'],
  ['image/gif', 0, 'GIF89a'],
  ['image/webp', 8, 'WEBPVP8'],
  ['image/avif', 4, 'ftypavif'],
]

/** The type of a picture, whatever its sender calls it; null for anything else. */
export function pictureType(bytes: Uint8Array): string | null {
  const begins = String.fromCharCode(...bytes.subarray(0, 16))
  const found = PICTURES.find(([, at, magic]) => begins.startsWith(magic, at))
  return found?.[0] ?? null
}

export const isGzip = (bytes: Uint8Array): boolean =>
  bytes[0] === 0x1f && bytes[1] === 0x8b && bytes[2] === 8
