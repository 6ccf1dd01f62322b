/** How deeply JSON is nested, before a parser or a schema walks down. */

/** A message of the protocol has about ten levels. */
const MAX_DEPTH = 32
/** Brackets and quotation marks in ASCII, which is what they are in UTF-8. */
const [OBJECT, END_OBJECT, ARRAY, END_ARRAY, QUOTE, BACKSLASH] = [
  0x7b, 0x7d, 0x5b, 0x5d, 0x22, 0x5c,
]

/** Whether nothing in this JSON is nested more deeply than a message needs. */
export function isShallow(json: Uint8Array): boolean {
  let depth = 0
  let isText = false
  for (let i = 0; i < json.length; i++) {
    const byte = json[i]
    if (isText) {
      if (byte === BACKSLASH) i++
      else if (byte === QUOTE) isText = false
    } else if (byte === QUOTE) isText = true
    else if (byte === OBJECT || byte === ARRAY) {
      if (++depth > MAX_DEPTH) return false
    } else if (byte === END_OBJECT || byte === END_ARRAY) depth--
  }
  return true
}
