/** Draws the last pings of a monitor as lines on a strip of time, so that a missing ping leaves a gap. */
import type { PulseStatus } from '../../client/index.ts'
import { el, svg } from '../dom.ts'
import { count, moment, remaining } from '../format.ts'

const WIDTH = 600
const HEIGHT = 48
const MARGIN = 4

/** @param now the service's time, which is the right edge. */
export function pingStrip(
  { recentHeartbeats, expectedIntervalSeconds, graceSeconds }: PulseStatus,
  now: number,
): HTMLElement {
  const times = recentHeartbeats.map((time) => Date.parse(time)).reverse()
  const [first] = times
  if (first === undefined) {
    return el('p', { class: 'strip empty quiet' }, 'The pings will show here, one line each.')
  }
  const span = Math.max(now - first, 1)
  const x = (time: number): number => MARGIN + ((time - first) / span) * (WIDTH - 2 * MARGIN)
  const allowed = (expectedIntervalSeconds + graceSeconds) * 1000
  const gaps = times
    .map((time, index) => ({ from: time, to: times[index + 1] ?? now }))
    .filter(({ from, to }) => to - from >= allowed)
  const drawing = svg(
    'svg',
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    ...gaps.map(({ from, to }) =>
      svg('rect', {
        class: 'gap',
        x: x(from).toFixed(1),
        y: '0',
        width: Math.max(x(to) - x(from), 1).toFixed(1),
        height: String(HEIGHT),
      }),
    ),
    svg('path', {
      class: 'pings',
      d: times.map((time) => `M${x(time).toFixed(1)} 8V${HEIGHT - 8}`).join(''),
    }),
  )
  const longest = Math.max(...gaps.map(({ from, to }) => to - from))
  const words =
    gaps.length === 0
      ? 'None came late.'
      : `${count(gaps.length)} ${gaps.length === 1 ? 'gap was' : 'gaps were'} longer than allowed, the longest ${remaining(longest)}.`
  return el(
    'figure',
    { class: 'strip' },
    drawing,
    el(
      'figcaption',
      { class: 'small quiet number' },
      `The last ${count(times.length)} ${times.length === 1 ? 'ping' : 'pings'}, since ${moment(new Date(first).toISOString())}. ${words}`,
    ),
  )
}
