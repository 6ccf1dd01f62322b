/** The media type in a Content-Type. */

/** The media type in lower case, without parameters (RFC 9110 §8.3.1). */
export function mediaType(contentType: string | null): string | null {
  return contentType === null ? null : (contentType.split(';')[0] ?? '').trim().toLowerCase()
}
