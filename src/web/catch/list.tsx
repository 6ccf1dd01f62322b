/** The requests of an inbox, newest first. Only the rows in view are drawn, so that 10 000 scroll like ten. */
import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import type { CatchEvent } from '../../client/index.ts'
import { plainly } from '../lib/foreign.ts'
import { ago, bytes, when } from '../lib/format.ts'
import { Icon } from '../ui/icons.tsx'
import { attempt } from '../ui/overlay.tsx'
import { Ticking } from '../ui/show.tsx'
import type { Inbox } from './model.ts'

/** Rows that are drawn above and below those in view. */
const AROUND = 8
/** Older requests are asked for so many rows before the end. */
const AHEAD = 20
/** A longer path or type is cut by the row anyway. */
const MAX_SHOWN = 200

export function EventList({ inbox }: { inbox: Inbox }) {
  const events = inbox.events.shown.value
  const shownId = inbox.shown.value?.id
  const hasOlder = inbox.events.hasOlder.value
  const isLoading = inbox.events.isLoading.value
  const loadOlder = (): Promise<void> => attempt(inbox.events.loadOlder)
  const scroller = useRef<HTMLDivElement>(null)
  const probe = useRef<HTMLDivElement>(null)
  const view = useSignal({ top: 0, height: 600, row: 36 })
  const focusedId = useSignal<string | null>(null)
  const mustFocus = useRef(false)
  const firstId = useRef<string | undefined>(undefined)

  useLayoutEffect(() => {
    const { current: box } = scroller
    if (!box) return
    const measure = (): void => {
      // While a phone shows a request in its place, the list has no size, and keeps what it knew.
      if (box.clientHeight === 0) return
      const row = probe.current?.offsetHeight || 36
      view.value = { top: box.scrollTop, height: box.clientHeight, row }
    }
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(box)
    if (probe.current) observer.observe(probe.current)
    box.addEventListener('scroll', measure, { passive: true })
    return () => {
      observer.disconnect()
      box.removeEventListener('scroll', measure)
    }
  }, [view])

  // What comes on top moves nothing that somebody looks at.
  useLayoutEffect(() => {
    const { current: box } = scroller
    const added = events.findIndex(({ id }) => id === firstId.current)
    if (box && added > 0 && box.scrollTop > 0) box.scrollTop += added * view.peek().row
    else if (box && added === -1) box.scrollTop = 0
    firstId.current = events[0]?.id
  }, [events, view])

  const { top, height, row } = view.value
  const from = Math.max(0, Math.floor(top / row) - AROUND)
  const to = Math.min(events.length, Math.ceil((top + height) / row) + AROUND)
  const isAtEnd = to >= events.length - AHEAD
  // Once for what is loaded: a service that fails is not asked again and again.
  useEffect(() => {
    if (isAtEnd && hasOlder && !isLoading) void loadOlder()
  }, [isAtEnd, hasOlder, events])

  const tabId =
    [focusedId.value, shownId].find((id) => events.some((event) => event.id === id)) ??
    events[0]?.id
  const indexes = Array.from({ length: Math.max(0, to - from) }, (_, at) => from + at)
  // The row that has the keyboard stays drawn, or the keyboard would begin at the top of the page.
  const held = events.findIndex(({ id }) => id === tabId)
  if (held !== -1 && (held < from || held >= to)) indexes.push(held)

  // Before the next key can be pressed.
  useLayoutEffect(() => {
    if (!mustFocus.current) return
    mustFocus.current = false
    scroller.current
      ?.querySelector<HTMLElement>(`[data-id="${focusedId.value}"] button`)
      ?.focus({ preventScroll: true })
  })

  inbox.focusRow.current = (id) => {
    const index = Math.max(
      0,
      events.findIndex((event) => event.id === id),
    )
    const event = events[index]
    const { current: box } = scroller
    if (!event || !box) return
    const place = view.peek()
    const at = index * place.row
    if (at < box.scrollTop) box.scrollTop = at
    else if (at + place.row > box.scrollTop + place.height)
      box.scrollTop = at + place.row - place.height
    mustFocus.current = true
    // Even if it is the same row: it may have been drawn anew.
    focusedId.value = null
    focusedId.value = event.id
  }

  return (
    <div class="list-scroll" ref={scroller}>
      <div class="event-row probe" aria-hidden="true" ref={probe} />
      <div
        class="events"
        role="list"
        aria-label="Requests, newest first"
        style={{ height: `${events.length * row}px` }}
      >
        {indexes.map((index) => {
          const event = events[index] as CatchEvent
          return (
            <div
              key={event.id}
              role="listitem"
              aria-posinset={index + 1}
              aria-setsize={hasOlder ? -1 : events.length}
              data-id={event.id}
              class="event-row"
              style={{ transform: `translateY(${index * row}px)` }}
            >
              <button
                type="button"
                aria-current={event.id === shownId ? 'true' : undefined}
                tabIndex={event.id === tabId ? 0 : -1}
                // A press by the keyboard is no click of a pointer, which has a count.
                onClick={({ detail }) => inbox.open(event, { byKeyboard: detail === 0 })}
                onFocus={() => {
                  focusedId.value = event.id
                }}
              >
                <Row event={event} />
              </button>
            </div>
          )
        })}
      </div>
      {hasOlder && (
        <button type="button" class="btn quiet wide" aria-busy={isLoading} onClick={loadOlder}>
          Load older requests
        </button>
      )}
    </div>
  )
}

function Row({ event }: { event: CatchEvent }) {
  const { method, path, receivedAt, access, bodyBytes } = event
  return (
    <>
      <span class="method">{method}</span>{' '}
      <span class="path">{plainly((path || '/').slice(0, MAX_SHOWN))}</span>{' '}
      {access === 'authenticated' && (
        <span class="quiet" title="authenticated">
          <Icon name="lock" />
          <span class="visually-hidden">authenticated</span>
        </span>
      )}
      <span class="size number">{bodyBytes === 0 ? '–' : bytes(bodyBytes)}</span>{' '}
      <time class="number" dateTime={receivedAt} title={when(receivedAt)}>
        <Ticking text={(now) => ago(now - Date.parse(receivedAt))} />
      </time>
    </>
  )
}
