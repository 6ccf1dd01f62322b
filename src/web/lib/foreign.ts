/** Makes the invisible characters in a stranger's text visible, so that it cannot look like other text. */
import { replaceInvisible } from '../../lib/invisible.ts'

/** Replaces invisible characters: a zero byte by `␀`, a change of direction by `‹U+202E›`. */
export function plainly(text: string): string {
  return replaceInvisible(text, visible, { keep: '\t\n\r' })
}

function visible(code: number): string {
  // Unicode's Control Pictures have the order of the first controls.
  if (code < 0x20) return String.fromCodePoint(0x2400 + code)
  return `‹U+${code.toString(16).toUpperCase().padStart(4, '0')}›`
}
