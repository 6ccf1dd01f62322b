/** The requests of an inbox as a list, newest first. */
import type { CatchEvent } from '../../client/index.ts'
import { el } from '../dom.ts'
import { plainly } from '../foreign.ts'
import { bytes, moment } from '../format.ts'
import { accessBadge } from './event-view.ts'

export type EventList = {
  element: HTMLElement
  /** Shows these events. Existing lines stay in place, with the keyboard focus. */
  show(events: readonly CatchEvent[]): void
  /** Marks the line of the event that is shown beside the list. */
  mark(chosen: CatchEvent | null): void
  /** Moves the keyboard focus to a line, or to the first if that line is gone. */
  focus(id: string | undefined): void
}

/** @param onChoose is called with the event of a line that was clicked. */
export function createEventList(onChoose: (event: CatchEvent) => unknown): EventList {
  const element = el('ul', { class: 'events', 'aria-label': 'Requests, newest first' })
  let lines = new Map<string, HTMLElement>()

  const buttonOf = (line: Element | null | undefined): HTMLElement | null =>
    line?.querySelector('button') ?? null

  return {
    element,
    show(events) {
      const before = lines
      lines = new Map(
        events.map((event) => [event.id, before.get(event.id) ?? lineOf(event, onChoose)]),
      )
      for (const [id, line] of before) if (!lines.has(id)) line.remove()
      let next = element.firstElementChild
      for (const line of lines.values()) {
        if (line === next) next = next.nextElementSibling
        else element.insertBefore(line, next)
      }
    },
    mark(chosen) {
      for (const [id, line] of lines) {
        const button = buttonOf(line)
        if (id === chosen?.id) button?.setAttribute('aria-current', 'true')
        else button?.removeAttribute('aria-current')
      }
    },
    focus(id) {
      buttonOf(lines.get(id ?? '') ?? element.firstElementChild)?.focus()
    },
  }
}

function lineOf(event: CatchEvent, onChoose: (event: CatchEvent) => unknown): HTMLElement {
  return el(
    'li',
    {},
    el(
      'button',
      { type: 'button', onclick: () => onChoose(event) },
      el('span', { class: 'method' }, event.method),
      el('span', { class: 'path' }, plainly(event.path || '/')),
      accessBadge(event),
      el(
        'span',
        { class: 'more small number' },
        `${moment(event.receivedAt)} · ${bytes(event.bodyBytes)}`,
      ),
    ),
  )
}
