/** Shows the requests of an inbox: a filter, their list, and the chosen request beside it. */
import type { CatchClient } from '../../client/catch.ts'
import type { EventFilter } from '../../client/event-filter.ts'
import type { CatchEvent } from '../../client/index.ts'
import { button, codeBox, toast } from '../components.ts'
import { byId, el, fill } from '../dom.ts'
import { plainly } from '../foreign.ts'
import { attempt } from '../live.ts'
import { createEventList } from './event-list.ts'
import { eventView } from './event-view.ts'
import { filterForm } from './filters.ts'
import type { LoadedEvents } from './loaded-events.ts'

export type EventBrowser = {
  element: HTMLElement
  /** Shows a new event, if it matches the filter. */
  add(event: CatchEvent): void
}

export function createEventBrowser({
  inbox,
  events,
  ingestUrl,
  onDeleted,
}: {
  inbox: Pick<CatchClient, 'deleteEvent'>
  events: LoadedEvents
  ingestUrl: string
  /** Called after an event was deleted. */
  onDeleted: () => Promise<void>
}): EventBrowser {
  let chosen: CatchEvent | null = null
  const list = createEventList(choose)
  const emptiness = el('p', { class: 'quiet' })
  const older = button('Older', loadOlder, { kind: 'wide' })
  const announcement = el('p', { class: 'visually-hidden', 'aria-live': 'polite' })
  const detail = el('div', {})
  const element = el(
    'div',
    { class: 'two' },
    el(
      'div',
      { class: 'stack' },
      ...[filterForm(filterBy), list.element, emptiness, older, announcement],
    ),
    detail,
  )
  showList()
  showDetail()

  function add(event: CatchEvent): void {
    if (!events.add(event)) return
    announcement.textContent = `New request: ${event.method} ${plainly(event.path)}`
    showList()
    if (!chosen) showDetail()
  }

  function filterBy(filter: EventFilter): Promise<void> {
    return attempt(async () => {
      await events.filterBy(filter)
      showList()
    })
  }

  function loadOlder(): Promise<void> {
    return attempt(async () => {
      const { length } = events.list()
      await events.loadOlder()
      showList()
      // The button disappears, and the keyboard focus would move to the top of the page.
      if (!events.hasOlder()) list.focus(events.list()[length]?.id)
    })
  }

  function remove(event: CatchEvent): Promise<void> {
    return attempt(async () => {
      await inbox.deleteEvent(event.id)
      events.remove(event.id)
      showList()
      choose(null)
      toast('Deleted for good')
      await onDeleted()
    })
  }

  function choose(event: CatchEvent | null): void {
    const before = chosen
    chosen = event
    list.mark(chosen)
    showDetail()
    if (event) byId('event-title').focus()
    else list.focus(before?.id)
  }

  function showList(): void {
    list.show(events.list())
    list.mark(chosen)
    emptiness.textContent = events.isFiltered() ? 'Nothing fits this filter.' : 'No requests yet.'
    emptiness.hidden = events.list().length > 0
    older.hidden = !events.hasOlder()
  }

  function showDetail(): void {
    const isEmpty = events.list().length === 0
    element.classList.toggle('reading', chosen !== null || isEmpty)
    fill(detail, chosen ? detailOf(chosen) : isEmpty ? lesson(ingestUrl) : hint())
  }

  function detailOf(event: CatchEvent): HTMLElement {
    return eventView(event, {
      ingestUrl,
      onDelete: () => remove(event),
      onBack: () => choose(null),
    })
  }

  return { element, add }
}

const hint = (): HTMLElement =>
  el('p', { class: 'card quiet' }, 'Choose a request to see it whole.')

/** How to send a first request. Shown while the inbox is empty. */
function lesson(ingestUrl: string): HTMLElement {
  const example = `curl --json '{"hello":"world"}' ${ingestUrl}/first`
  return el(
    'div',
    { class: 'card stack' },
    el('h2', {}, 'Waiting for the first request'),
    el(
      'p',
      {},
      'Give the address above to whatever sends webhooks, or try it from a terminal. It shows here at once.',
    ),
    codeBox(example, { label: 'an example', isWrapped: true }),
    el(
      'p',
      { class: 'small quiet' },
      'Anything after the address is kept as the path. Senders with the ingest token, as Authorization: Bearer, are marked authenticated.',
    ),
  )
}
