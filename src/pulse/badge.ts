/** The badge of a shared monitor: its name and its state, for a README or a status page. */
import { replaceInvisible } from '../lib/invisible.ts'
import type { PulseState } from './schema.ts'

/** Behind white text; each has a contrast of at least 4.5 : 1 with it (WCAG 2.2, 1.4.3). */
export const STATE_COLOURS: Record<PulseState, string> = {
  waiting: '#0969da',
  operational: '#1a7f37',
  late: '#cf222e',
  exhausted: '#8250df',
  expired: '#57606a',
}
export const NAME_COLOUR = '#24292f'
const TEXT_COLOUR = '#ffffff'

const HEIGHT = 20
const PADDING = 6
/** The width of a character at 11 px, in pixels. The text is scaled to this, so it always fits. */
const NARROW = 6.6
const WIDE = 12

/** A complete SVG document. Without a name it shows only the state. */
export function badge(name: string, state: PulseState): string {
  const shown = printable(name)
  const nameWidth = shown === '' ? 0 : textWidth(shown) + 2 * PADDING
  const stateWidth = textWidth(state) + 2 * PADDING
  const width = nameWidth + stateWidth
  const title = escapeXml(shown === '' ? state : `${shown}: ${state}`)
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${HEIGHT}" viewBox="0 0 ${width} ${HEIGHT}" role="img" aria-label="${title}"><title>${title}</title>${box(0, nameWidth, NAME_COLOUR)}${box(nameWidth, stateWidth, STATE_COLOURS[state])}<g fill="${TEXT_COLOUR}" font-family="Verdana,Geneva,'DejaVu Sans',sans-serif" font-size="11">${text(0, nameWidth, shown)}${text(nameWidth, stateWidth, state)}</g></svg>\n`
}

function box(x: number, width: number, colour: string): string {
  return width === 0 ? '' : `<rect x="${x}" width="${width}" height="${HEIGHT}" fill="${colour}"/>`
}

function text(x: number, width: number, shown: string): string {
  return width === 0
    ? ''
    : `<text x="${x + PADDING}" y="14" textLength="${width - 2 * PADDING}" lengthAdjust="spacingAndGlyphs">${escapeXml(shown)}</text>`
}

/**
 * Removes what a reader cannot see: control characters, halves of a pair, U+FFFE and U+FFFF would also break the
 * document (XML 1.0 §2.2).
 */
function printable(name: string): string {
  return replaceInvisible(name, () => ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
}

function escapeXml(shown: string): string {
  return shown
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
}

function textWidth(shown: string): number {
  let width = 0
  for (const character of shown) width += character < '\u1100' ? NARROW : WIDE
  return Math.ceil(width)
}
