/** What kind of thing a Content-Type names. */

/** The media type of a content type, lower case, without parameters (RFC 9110 §8.3.1). */
export function mediaType(contentType: string | null): string | null {
  return contentType === null ? null : (contentType.split(';')[0] ?? '').trim().toLowerCase()
}
