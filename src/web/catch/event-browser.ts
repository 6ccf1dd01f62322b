/**
 * Shows the requests of an inbox: a filter and their list, and one request in full. They stand side by side where
 * there is room, and one after the other on phones, where the browser's Back leads to the list.
 */
import type { CatchClient } from '../../client/catch.ts'
import type { EventFilter } from '../../client/event-filter.ts'
import type { CatchEvent } from '../../client/index.ts'
import { button, copyButton, toast } from '../components.ts'
import { el, fill } from '../dom.ts'
import { plainly } from '../foreign.ts'
import { attempt } from '../live.ts'
import { everySecond } from '../service.ts'
import type { Deletions } from './deletions.ts'
import { createEventList } from './event-list.ts'
import { eventView } from './event-view.ts'
import { filterForm } from './filters.ts'
import type { LoadedEvents } from './loaded-events.ts'
import { replayHint } from './replay-hint.ts'

/** As in style.css: narrower pages show the list or a request, not both. */
const NARROW = '(max-width: 52rem)'
/** Older requests load this long before the end of the list is in view, in pixels. */
const LOAD_AHEAD = '600px'

export type EventBrowser = {
  element: HTMLElement
  /** Shows a new event, if it matches the filter. */
  add(event: CatchEvent): void
  /** Chooses the request below (1) or above (-1). */
  step(by: 1 | -1): void
  search(): void
  /** Copies the body of the request that is shown. */
  copy(): void
  /** Back from a request to the list. */
  leave(): void
  hasListFocus(): boolean
}

export function createEventBrowser({
  inbox,
  events,
  ingestUrl,
  deletions,
  lesson,
  onDeleted,
  signal,
}: {
  inbox: Pick<CatchClient, 'deleteEvent'>
  events: LoadedEvents
  ingestUrl: string
  deletions: Deletions
  /** Shown while the inbox has no requests. */
  lesson: HTMLElement
  /** Called after an event was deleted. */
  onDeleted: () => Promise<void>
  signal: AbortSignal
}): EventBrowser {
  /** Chosen by the user. Until then the newest is shown. */
  let chosen: CatchEvent | null = null
  let shown: CatchEvent | null = null
  let scrolledTo = 0
  const narrow = matchMedia(NARROW)
  const list = createEventList((event, { byKeyboard }) => {
    choose(event)
    if (byKeyboard || narrow.matches) focusDetail()
  })
  const filter = filterForm(filterBy)
  const clear = button('Clear the filter', clearFilter, { kind: 'small' })
  const emptiness = el('p', {}, '')
  const nothing = el('div', { class: 'nothing stack quiet' }, emptiness, clear)
  const older = button('Load older requests', loadOlder, { kind: 'wide' })
  const announcement = el('p', { class: 'visually-hidden', 'aria-live': 'polite' })
  const scroller = el('div', { class: 'list-scroll' }, list.element, nothing, older)
  const detail = el('div', { class: 'pane-detail', role: 'region', 'aria-label': 'The request' })
  const element = el(
    'div',
    { class: 'panes' },
    el('div', { class: 'pane-list' }, filter.element, scroller, announcement),
    detail,
  )

  const observer = new IntersectionObserver(
    // Several reports may come at once, of which the last is true now.
    (reports) => void (reports.at(-1)?.isIntersecting && !older.hidden && loadOlder()),
    // The list may scroll by itself, or with the page.
    { rootMargin: LOAD_AHEAD, scrollMargin: LOAD_AHEAD } as IntersectionObserverInit,
  )
  listen()
  showList()
  everySecond(signal, list.tick)

  function listen(): void {
    const options = { signal }
    narrow.addEventListener('change', showDetail, options)
    addEventListener('popstate', returned, options)
    document.addEventListener('visibilitychange', markShownRead, options)
    // Whoever works in a request wants to keep it, although a newer one comes.
    for (const kind of ['pointerdown', 'focusin', 'wheel']) {
      detail.addEventListener(kind, keepShown, { ...options, passive: true })
    }
    filter.search.addEventListener('keydown', leaveSearch, options)
    observer.observe(older)
    signal.addEventListener('abort', () => observer.disconnect())
    history.scrollRestoration = 'manual'
    signal.addEventListener('abort', () => {
      history.scrollRestoration = 'auto'
    })
  }

  function add(event: CatchEvent): void {
    if (!events.add(event)) return
    announcement.textContent = `New request: ${event.method} ${plainly(event.path)}`
    list.add(event, { isUnread: true })
    showEmptiness()
    showDetail()
  }

  function filterBy(query: EventFilter): Promise<void> {
    return attempt(async () => {
      await events.filterBy(query)
      scroller.scrollTop = 0
      showList()
    })
  }

  function clearFilter(): void {
    filter.clear()
    // The button is gone with its reason.
    filter.search.focus()
  }

  let isLoading = false
  async function loadOlder(): Promise<void> {
    if (isLoading) return
    isLoading = true
    older.setAttribute('aria-busy', 'true')
    const hadFocus = document.activeElement === older
    const { length } = events.list()
    await attempt(async () => {
      await events.loadOlder()
      showList()
    })
    isLoading = false
    older.removeAttribute('aria-busy')
    // The button may be gone, and the keyboard would begin at the top of the page.
    if (hadFocus && older.hidden) list.focus(events.list()[length]?.id)
    // It reports changes only, and the end may be in view as before. Observed anew, it reports once.
    // After a failure only a scroll or the button asks again.
    if (events.list().length === length) return
    observer.unobserve(older)
    observer.observe(older)
  }

  function remove(event: CatchEvent): void {
    const next = neighbour(event, 1) ?? neighbour(event, -1)
    const isInList = list.hasFocus()
    events.hide(event.id)
    const isLeaving = narrow.matches && chosen !== null
    chosen = narrow.matches ? null : next
    showList()
    if (isLeaving) leaveDetail()
    if (isInList || isLeaving) list.focus(next?.id)
    else if (next) focusDetail()
    deletions.start({
      undone() {
        events.unhide(event)
        chosen = narrow.matches ? null : event
        showList()
        list.focus(event.id)
      },
      remove: () =>
        attempt(async () => {
          try {
            await inbox.deleteEvent(event.id)
          } catch (error) {
            events.unhide(event)
            showList()
            throw error
          }
          await onDeleted()
        }),
    })
  }

  function choose(event: CatchEvent): void {
    if (narrow.matches) {
      const here = { inboxEvent: event.id }
      if (chosen) history.replaceState(here, '')
      else {
        scrolledTo = scrollY
        history.pushState(here, '')
      }
    }
    chosen = event
    showDetail()
  }

  function keepShown(): void {
    chosen ??= shown
  }

  function step(by: 1 | -1): void {
    const from = narrow.matches && !chosen ? focusedEvent() : (chosen ?? shown)
    const next = from ? neighbour(from, by) : (events.list()[0] ?? null)
    if (!next) return
    const wasInDetail = detail.contains(document.activeElement)
    // On a phone, the list moves its focus only: a request would take its place.
    if (!narrow.matches || chosen) choose(next)
    if (wasInDetail || (narrow.matches && chosen)) focusDetail()
    else list.focus(next.id)
  }

  function focusedEvent(): CatchEvent | null {
    const id = document.activeElement?.closest<HTMLElement>('[data-id]')?.dataset.id
    return events.list().find((event) => event.id === id) ?? null
  }

  function neighbour(event: CatchEvent, by: 1 | -1): CatchEvent | null {
    const all = events.list()
    const at = all.findIndex(({ id }) => id === event.id)
    return at === -1 ? (all[0] ?? null) : (all[at + by] ?? null)
  }

  function leave(): void {
    if (chosen && narrow.matches) {
      leaveDetail()
      return
    }
    const { id } = chosen ?? shown ?? {}
    list.focus(id)
    chosen = null
    showDetail()
  }

  /** Back to the list of a phone, over the same way as the browser's own button. */
  function leaveDetail(): void {
    if (history.state?.inboxEvent) history.back()
    else returned()
  }

  function returned(): void {
    if (!narrow.matches) return
    const { id } = chosen ?? {}
    const forward = events.list().find((event) => event.id === history.state?.inboxEvent)
    chosen = forward ?? null
    showDetail()
    if (forward) focusDetail()
    else {
      scrollTo(0, scrolledTo)
      list.focus(id)
    }
  }

  function leaveSearch(event: KeyboardEvent): void {
    if (event.key !== 'Escape') return
    event.preventDefault()
    if (filter.search.value !== '') filter.clear()
    else list.focus((chosen ?? shown)?.id)
  }

  function focusDetail(): void {
    document.getElementById('event-title')?.focus({ preventScroll: true })
    if (narrow.matches) scrollTo(0, 0)
  }

  function showList(): void {
    list.show(events.list())
    showEmptiness()
    showDetail()
  }

  function showEmptiness(): void {
    nothing.hidden = events.list().length > 0
    emptiness.textContent = events.isFiltered() ? 'No requests match.' : 'No requests yet.'
    clear.hidden = !events.isFiltered()
    older.hidden = !events.hasOlder()
  }

  function showDetail(): void {
    const isVacant = events.list().length === 0 && !events.isFiltered()
    const newest = events.list()[0] ?? null
    const next = isVacant ? null : (chosen ?? (narrow.matches ? null : newest))
    element.classList.toggle('reading', chosen !== null && !isVacant)
    element.classList.toggle('vacant', isVacant)
    if (next === null || next !== shown || !detail.hasChildNodes()) {
      shown = next
      fill(detail, next ? detailOf(next) : isVacant ? lesson : hint())
      detail.scrollTop = 0
    }
    list.mark(shown)
    markShownRead()
  }

  function markShownRead(): void {
    if (!shown || document.hidden) return
    list.markRead(shown.id)
  }

  function detailOf(event: CatchEvent): HTMLElement {
    return el(
      'div',
      { class: 'stack' },
      eventView(event, {
        ingestUrl,
        onDelete: () => remove(event),
        onBack: leaveDetail,
        others: () => events.list(),
      }),
      replayHint(event),
    )
  }

  function copy(): void {
    if (!shown) return
    const { body, bodyEncoding, bodyBytes } = shown
    if (bodyBytes === 0) {
      toast('This request has no body.')
      return
    }
    const what = bodyEncoding === 'base64' ? 'The body, as base64,' : 'The body'
    copyButton(() => body, { onCopied: () => toast(`${what} is copied.`) }).click()
  }

  return {
    element,
    add,
    step,
    search: () => filter.search.focus(),
    copy,
    leave,
    hasListFocus: list.hasFocus,
  }
}

const hint = (): HTMLElement =>
  el('p', { class: 'card quiet' }, 'Select a request to see its details.')
