/** Makes the invisible characters in a stranger's text visible, so that it cannot look like other text. */

/**
 * Invisible characters: controls except tabs and line ends, characters that change the direction of
 * writing, and spaces without a width.
 */
const UNSEEN =
  /[^\P{Cc}\t\n\r]|[\u061c\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/gu

/** Replaces invisible characters: a zero byte by `␀`, a change of direction by `‹U+202E›`. */
export function plainly(text: string): string {
  return text.replaceAll(UNSEEN, (character) => {
    const code = character.codePointAt(0) ?? 0
    // Unicode's Control Pictures have the order of the first controls.
    if (code < 0x20) return String.fromCodePoint(0x2400 + code)
    return `‹U+${code.toString(16).toUpperCase().padStart(4, '0')}›`
  })
}
