/**
 * Draws the stored pings of a monitor as lines on a strip of time, so that a missing ping leaves a gap. The
 * pointer shows the time of a line; a list below has all of them.
 */
import type { PulseStatus } from '../../client/index.ts'
import { el, fill, setText, svg } from '../dom.ts'
import { count, duration, moment } from '../format.ts'
import { type History, historyOf, type Spell } from './history.ts'

const WIDTH = 600
const HEIGHT = 48
const MARGIN = 4
/** A pointer is seldom on a line of two pixels. */
const NEAR = 8
const HINT = 'Point at the strip, or tap it, to see a time.'

export type Strip = {
  element: HTMLElement
  /** @param now the service's time, which is the right edge. */
  draw(status: PulseStatus, now: number): void
}

export function createStrip(): Strip {
  const drawing = svg('svg', {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: 'none',
    'aria-hidden': 'true',
    onpointermove: point,
    onpointerdown: point,
    onpointerleave: () => history && readOut(HINT),
  })
  const readout = document.createTextNode('Each ping will show here as a line.')
  const caption = document.createTextNode('No pings yet.')
  const spells = folded()
  const times = folded()
  const outages = folded()
  // All of it takes its place before the first ping, so that nothing below moves.
  const element = el(
    'figure',
    { class: 'strip' },
    drawing,
    el('p', { class: 'small quiet number readout', 'aria-hidden': 'true' }, readout),
    el('figcaption', { class: 'small number' }, caption),
    el('div', { class: 'halves folds' }, times.element, spells.element),
    outages.element,
  )
  let history: History | null = null

  function draw(status: PulseStatus, now: number): void {
    const before = history
    const blind = status.blindWindows
    outages.element.hidden = blind.length === 0
    outages.show(
      `The service was unreachable ${blind.length === 1 ? 'once' : `${count(blind.length)} times`}`,
      blind.map(blindWords),
    )
    history = historyOf(status, now)
    if (!history) return
    if (!before) readOut(HINT)
    const x = placing(history)
    fill(
      drawing,
      ...history.spells.map(({ from, to }) => block('gap', x(from), x(to ?? now))),
      ...blind
        .filter(({ endedAt }) => Date.parse(endedAt) > (history?.pings[0] ?? 0))
        .map(({ beganAt, endedAt }) =>
          block('blind', x(Date.parse(beganAt)), x(Date.parse(endedAt))),
        ),
      svg('path', {
        class: 'pings',
        d: history.pings.map((time) => `M${x(time).toFixed(1)} 8V${HEIGHT - 8}`).join(''),
      }),
    )
    setText(caption, captionOf(history, status.acceptedHeartbeatCount))
    const late = history.spells.length
    spells.show(late === 1 ? 'Late once' : `Late ${count(late)} times`, lateLines(history.spells))
    times.show('All times', history.pings.toReversed().map(momentOf))
  }

  function point(event: Event): void {
    if (!history || !(event instanceof PointerEvent)) return
    const { left, width } = drawing.getBoundingClientRect()
    readOut(wordsAt(history, ((event.clientX - left) / width) * WIDTH))
  }

  function readOut(text: string): void {
    setText(readout, text)
  }

  return { element, draw }
}

/** What is at this place of the strip: a ping if one is near, or the lateness. */
function wordsAt(history: History, place: number): string {
  const x = placing(history)
  const distance = (time: number): number => Math.abs(x(time) - place)
  const nearest = history.pings.reduce((a, b) => (distance(b) < distance(a) ? b : a))
  const spell = history.spells.find(({ from, to }) => {
    return x(from) <= place && place <= x(to ?? history.until)
  })
  if (spell && distance(nearest) > NEAR) return lateWords(spell)
  return `Ping at ${momentOf(nearest)}`
}

/** Where a time is on the strip. */
function placing({ pings: [first = 0], until }: History): (time: number) => number {
  const span = Math.max(until - first, 1)
  return (time) =>
    MARGIN + (Math.min(Math.max(time - first, 0), span) / span) * (WIDTH - 2 * MARGIN)
}

function block(kind: 'gap' | 'blind', from: number, to: number): SVGElement {
  return svg('rect', {
    class: kind,
    x: from.toFixed(1),
    y: '0',
    width: Math.max(to - from, 1).toFixed(1),
    height: String(HEIGHT),
  })
}

function captionOf({ pings, onTime }: History, accepted: number): string {
  const since = momentOf(pings[0] ?? 0)
  if (pings.length === 1 && accepted === 1) return `Last ping: the first one, at ${since}.`
  const which = pings.length === accepted ? 'All' : 'The last'
  return `${which} ${count(pings.length)} pings, since ${since}.${onTime === null ? '' : ` On time for ${percent(onTime)} of that, by the current settings.`}`
}

/** Rounded down: only what was never late is 100 %. */
function percent(part: number): string {
  return `${Math.floor(part * 1000) / 10} %`
}

const lateLines = (spells: Spell[]): string[] => spells.toReversed().map(lateWords)

function lateWords({ from, to }: Spell): string {
  if (to === null) return `Late since ${momentOf(from)}`
  return `Late from ${momentOf(from)}, for ${duration(to - from)}`
}

/** The last 20 of them are told, as they move the deadlines. */
function blindWords({ beganAt, endedAt }: PulseStatus['blindWindows'][number]): string {
  return `The service was unreachable from ${moment(beganAt)} to ${moment(endedAt)}; deadlines waited`
}

const momentOf = (time: number): string => moment(new Date(time).toISOString())

/** A list that is folded, and filled only while it is open. Without lines, only its place is there. */
function folded(): { element: HTMLElement; show: (title: string, lines: string[]) => void } {
  const title = document.createTextNode('')
  const list = el('ol', { class: 'number small', tabindex: '0' })
  const element = el(
    'details',
    { class: 'empty', ontoggle: refresh },
    el('summary', {}, title),
    list,
  )
  let lines: string[] = []

  function refresh(): void {
    if (element.open) fill(list, ...lines.map((line) => el('li', {}, line)))
  }

  return {
    element,
    show(now, next) {
      element.classList.toggle('empty', next.length === 0)
      setText(title, now)
      if (lines.join() === next.join()) return
      lines = next
      refresh()
    },
  }
}
