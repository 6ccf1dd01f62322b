/** The requests of an inbox as a list, newest first. */
import type { CatchEvent } from '../../client/index.ts'
import { el } from '../dom.ts'
import { plainly } from '../foreign.ts'
import { ago, bytes, moment } from '../format.ts'
import { clock } from '../service.ts'
import { accessBadge } from './event-view.ts'

/** Older ones show no seconds, so their times are looked at every half a minute. */
const SECONDS_UP_TO_MS = 60_000
const LOOK_AT_ALL_EVERY = 30

export type EventList = {
  element: HTMLElement
  /** Shows these events. Existing lines stay in place, with the keyboard focus. */
  show(events: readonly CatchEvent[]): void
  /** Shows a new event on top. Costs the same, however long the list is. */
  add(event: CatchEvent, options: { isUnread: boolean }): void
  /** Marks the line of the event that is shown beside the list, and brings it into view. */
  mark(shown: CatchEvent | null): void
  /** Removes the mark of an unread event. */
  markRead(id: string): void
  /** Moves the keyboard focus to a line, or to the first if that line is gone. */
  focus(id: string | undefined): void
  /** Whether the keyboard is in the list. */
  hasFocus(): boolean
  /** Shows anew how long ago each event came. To be called every second. */
  tick(): void
}

type Line = {
  event: CatchEvent
  element: HTMLElement
  button: HTMLElement
  /** Its text changes in place, so that nothing else does. */
  age: Text
}

/**
 * So many lines share a container, which the browser lays out only when it is near the screen. With ten thousand
 * lines beside each other, each new one would take half a second.
 */
const CHUNK = 50

const chunkOf = (lines: HTMLElement[]): HTMLElement =>
  el('div', { class: 'chunk', role: 'none' }, ...lines)

/** @param onChoose is called with the event of a line that was pressed, and whether that was by the keyboard. */
export function createEventList(
  onChoose: (event: CatchEvent, how: { byKeyboard: boolean }) => unknown,
): EventList {
  const element = el('div', {
    class: 'events',
    role: 'list',
    'aria-label': 'Requests, newest first',
  })
  let lines = new Map<string, Line>()
  /** The same lines, newest first. */
  let ordered: Line[] = []
  let marked: Line | undefined
  let reachable: HTMLElement | null = null
  let ticks = 0

  /** Tab reaches one line only: the others are reached by arrows. */
  function letTabReach(line: Line | undefined): void {
    reachable?.setAttribute('tabindex', '-1')
    reachable = (line ?? ordered[0])?.button ?? null
    reachable?.setAttribute('tabindex', '0')
  }

  const markedHere = (): Line | undefined => (marked && lines.get(marked.event.id)) || undefined

  function drop({ element: line }: Line): void {
    const chunk = line.parentElement
    line.remove()
    if (chunk?.childElementCount === 0) chunk.remove()
  }

  return {
    element,
    show(events) {
      const before = lines
      const tail: HTMLElement[] = []
      let after: HTMLElement | null = null
      lines = new Map()
      ordered = events.map((event) => before.get(event.id) ?? lineOf(event, onChoose))
      // From the end, because what is new stands before what is there, or at the end of the list.
      for (const line of ordered.toReversed()) {
        const { id } = line.event
        lines.set(id, line)
        if (before.has(id)) after = line.element
        else if (after) after.before(line.element)
        else tail.push(line.element)
      }
      for (const [id, line] of before) if (!lines.has(id)) drop(line)
      tail.reverse()
      for (let from = 0; from < tail.length; from += CHUNK) {
        element.append(chunkOf(tail.slice(from, from + CHUNK)))
      }
      letTabReach(markedHere())
    },
    add(event, { isUnread }) {
      const line = lineOf(event, onChoose)
      if (isUnread) line.element.dataset.unread = ''
      lines.set(event.id, line)
      ordered.unshift(line)
      const first = element.firstElementChild
      if (first && first.childElementCount < 2 * CHUNK) first.prepend(line.element)
      else element.prepend(chunkOf([line.element]))
      if (!markedHere()) letTabReach(line)
    },
    mark(shown) {
      const line = shown ? lines.get(shown.id) : undefined
      if (line === marked) return
      marked?.button.removeAttribute('aria-current')
      marked = line
      line?.button.setAttribute('aria-current', 'true')
      letTabReach(line)
    },
    markRead(id) {
      const line = lines.get(id)
      if (line) delete line.element.dataset.unread
    },
    focus(id) {
      const line = (lines.get(id ?? '') ?? ordered[0])?.button
      line?.focus({ preventScroll: true })
      line?.scrollIntoView({ block: 'nearest' })
    },
    hasFocus: () => element.contains(document.activeElement),
    tick() {
      // Whoever selects text here keeps it.
      const selection = getSelection()
      if (selection && !selection.isCollapsed && selection.containsNode(element, true)) return
      const now = clock.now()
      const isForAll = ticks++ % LOOK_AT_ALL_EVERY === 0
      for (const { event, age } of ordered) {
        const since = now - Date.parse(event.receivedAt)
        const text = ago(since)
        if (age.data !== text) age.data = text
        // They are in order, so that all that follow are older.
        if (!isForAll && since > SECONDS_UP_TO_MS + 2_000) return
      }
    },
  }
}

function lineOf(
  event: CatchEvent,
  onChoose: (event: CatchEvent, how: { byKeyboard: boolean }) => unknown,
): Line {
  const age = document.createTextNode(ago(clock.now() - Date.parse(event.receivedAt)))
  const button = el(
    'button',
    {
      type: 'button',
      tabindex: '-1',
      // A press by the keyboard is no click of a pointer, which has a count.
      onclick: (press) => onChoose(event, { byKeyboard: (press as MouseEvent).detail === 0 }),
    },
    el('span', { class: 'method' }, event.method),
    el('span', { class: 'path' }, plainly(event.path || '/')),
    el(
      'time',
      { class: 'small number', datetime: event.receivedAt, title: moment(event.receivedAt) },
      age,
    ),
    el(
      'span',
      { class: 'more small number' },
      el('span', { class: 'unread' }, el('span', { class: 'visually-hidden' }, 'Unread')),
      sizeOf(event),
    ),
    event.access === 'authenticated' && accessBadge(event),
  )
  const element = el('div', { role: 'listitem', 'data-id': event.id }, button)
  return { event, element, button, age }
}

function sizeOf({ bodyBytes, contentType }: CatchEvent): string {
  const size = bodyBytes === 0 ? 'no body' : bytes(bodyBytes)
  return contentType === null ? size : `${size} · ${plainly(contentType.slice(0, MAX_TYPE))}`
}

/** A longer type is cut by the line anyway. */
const MAX_TYPE = 60
