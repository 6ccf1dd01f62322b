/** Text that strangers sent, so that it cannot pass for other text. */

/**
 * What is not seen by itself: controls but for tabs and ends of lines, what turns the direction of
 * writing, and spaces without a width.
 */
const UNSEEN =
  /[^\P{Cc}\t\n\r]|[\u061c\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/gu

/** The text with what is not seen written out: `␀` for a zero byte, `‹U+202E›` for a turn. */
export function plainly(text: string): string {
  return text.replaceAll(UNSEEN, (character) => {
    const code = character.codePointAt(0) ?? 0
    // The pictures of the first controls lie in the same order (Unicode, Control Pictures).
    if (code < 0x20) return String.fromCodePoint(0x2400 + code)
    return `‹U+${code.toString(16).toUpperCase().padStart(4, '0')}›`
  })
}
