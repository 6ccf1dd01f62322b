/** Draws a QR code. */
import { encodeQR } from 'qr'
import { svg } from '../dom.ts'

/** @param label what a screen reader says instead of the squares. */
export function qrCode(text: string, label: string): SVGElement {
  const rows = encodeQR(text, 'raw', { ecc: 'low', border: 1 })
  const size = rows.length
  const path = rows
    .flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : '')))
    .join('')
  return svg(
    'svg',
    {
      viewBox: `0 0 ${size} ${size}`,
      role: 'img',
      'aria-label': label,
      'shape-rendering': 'crispEdges',
    },
    svg('path', { d: path, fill: 'currentColor' }),
  )
}
