/** Search over events: a case-insensitive substring of text body, query, path or content type. */
import { isUtf8 } from 'node:buffer'

export function matches(
  text: string,
  event: { path: string; query: string; content_type: string | null; body: Uint8Array },
): boolean {
  const wanted = text.toLowerCase()
  if (event.path.toLowerCase().includes(wanted)) return true
  if (event.query.toLowerCase().includes(wanted)) return true
  if (event.content_type?.toLowerCase().includes(wanted)) return true
  // Bytes that are no text have no characters to find.
  const { body } = event
  if (!isUtf8(body)) return false
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    .toString('utf8')
    .toLowerCase()
    .includes(wanted)
}
