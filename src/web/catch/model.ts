/** What the page of an inbox knows and does: its requests, which of them is shown, and what keys and presses mean. */
import { computed, signal } from '@preact/signals'
import { createCatchClient } from '../../client/catch.ts'
import type { EventFilter } from '../../client/event-filter.ts'
import type { CatchCapability, CatchEvent, CatchRefusals, CatchStatus } from '../../client/index.ts'
import { closedBy } from '../keys/opener.tsx'
import { createConnection } from '../lib/connection.ts'
import { plainly } from '../lib/foreign.ts'
import { noteEnd } from '../lib/keys.ts'
import { service } from '../lib/service.ts'
import { announce } from '../ui/overlay.tsx'
import { createDeletion } from './deletion.ts'
import { createEvents } from './events.ts'

/** As in inbox.css: narrower pages show the list or a request, not both. */
const NARROW = '(max-width: 52rem)'
/** Requests that arrive within this time refresh the counters once. */
const STATUS_DELAY_MS = 400
/** Refused requests do not show by themselves, so the page asks. */
const ASK_EVERY_MS = 20_000

export type TabName = 'Body' | 'Headers' | 'Query' | 'Verify' | 'Replay' | 'Compare' | 'Answer'

export type Counters = { status: CatchStatus; refusals: CatchRefusals }
export type Inbox = Awaited<ReturnType<typeof loadInbox>>

export async function loadInbox(capability: CatchCapability) {
  const { publicId, ownerToken } = capability
  const connection = createConnection()
  const client = createCatchClient(service, capability)
  const events = createEvents(client)
  const count = async (): Promise<Counters> => {
    const [status, refusals] = await Promise.all([client.status(), client.refusals()])
    noteEnd(publicId, status.expiresAt)
    return { status, refusals }
  }
  const counters = signal(await count())
  await events.load()

  const chosenId = signal<string | null>(null)
  const tab = signal<TabName>('Body')
  const narrow = matchMedia(NARROW)
  const isNarrow = signal(narrow.matches)
  /** Moves the keyboard to a row, or to the first if that one is gone: what the list offers while it is drawn. */
  const focusRow = { current: (_id: string | undefined): void => undefined }
  /** The filter in the fields, which the requests follow in a moment. */
  const wanted = signal<EventFilter>({})
  const search: { current: HTMLInputElement | null } = { current: null }
  const stop = new AbortController()
  const deletion = createDeletion(stop.signal)
  const { title } = document
  /** The title of the tab counts what comes while the person looks elsewhere. */
  let unseen = 0
  let scrolledTo = 0
  let willCount = false

  const chosen = computed(() => events.shown.value.find(({ id }) => id === chosenId.value) ?? null)
  /** A wide page shows the newest request until another is chosen. */
  const shown = computed(
    () => chosen.value ?? (isNarrow.value ? null : (events.shown.value[0] ?? null)),
  )

  /** Counters that could not be had stay as they were. */
  async function refresh(): Promise<void> {
    willCount = false
    try {
      counters.value = await count()
    } catch (error) {
      if (!stop.signal.aborted) closedBy(error)
    }
  }

  /** Also after the stream has ended: from where it did. */
  async function follow(): Promise<void> {
    await connection.follow(
      (told) => client.stream({ after: events.latestSequence(), ...told }),
      arrived,
      stop.signal,
    )
    await refresh()
  }

  function arrived(event: CatchEvent): void {
    if (!willCount) setTimeout(refresh, STATUS_DELAY_MS)
    willCount = true
    if (document.hidden) {
      unseen++
      document.title = `(${unseen}) ${title}`
    }
    if (!events.add(event)) return
    announce(`New request: ${event.method} ${plainly(event.path)}`)
  }

  function focusDetail(): void {
    requestAnimationFrame(() => {
      document.getElementById('event-title')?.focus({ preventScroll: true })
      if (isNarrow.value) scrollTo(0, 0)
    })
  }

  function choose(event: CatchEvent): void {
    if (isNarrow.value) {
      const here = { inboxEvent: event.id }
      if (chosen.value) history.replaceState(here, '')
      else {
        scrolledTo = scrollY
        history.pushState(here, '')
      }
    }
    chosenId.value = event.id
  }

  /** Back to the list of a phone, over the same way as the browser's own button. */
  function leaveDetail(): void {
    if (history.state?.inboxEvent) history.back()
    else returned()
  }

  function returned(): void {
    if (!isNarrow.value) return
    const id = chosenId.value ?? undefined
    const forward = events.shown.value.find((event) => event.id === history.state?.inboxEvent)
    chosenId.value = forward?.id ?? null
    if (forward) focusDetail()
    else {
      requestAnimationFrame(() => {
        scrollTo(0, scrolledTo)
        focusRow.current(id)
      })
    }
  }

  /** On a phone, the list moves its focus only: a request would take its place. */
  function step(by: number): void {
    const all = events.shown.value
    const from = document.activeElement?.closest<HTMLElement>('[data-id]')?.dataset.id
    const next = all[all.findIndex(({ id }) => id === from) + by]
    if (!next) return
    if (!isNarrow.value) choose(next)
    focusRow.current(next.id)
  }

  function leave(): void {
    if (chosen.value && isNarrow.value) {
      leaveDetail()
      return
    }
    focusRow.current(shown.value?.id)
    chosenId.value = null
  }

  function remove(event: CatchEvent): void {
    const all = events.shown.value
    const at = all.findIndex(({ id }) => id === event.id)
    const next = all[at + 1] ?? all[at - 1]
    const wasReading = isNarrow.value && chosen.value !== null
    events.hide(event.id)
    chosenId.value = isNarrow.value ? null : (next?.id ?? null)
    if (wasReading) leaveDetail()
    else requestAnimationFrame(() => focusRow.current(next?.id))
    deletion.start({
      path: `/api/catch/${encodeURIComponent(publicId)}/events/${encodeURIComponent(event.id)}`,
      token: ownerToken,
      restore() {
        events.unhide(event.id)
        if (!isNarrow.value) chosenId.value = event.id
      },
      onDeleted: refresh,
    })
  }

  /** No letters: a person who dictates would press them by speaking (WCAG 2.1.4). */
  function pressed(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
    if (document.querySelector('dialog[open]')) return
    if ((event.target as Element).closest('input, textarea, select, [role="tablist"]')) return
    const isInList = (event.target as Element).closest('.events') !== null
    const by = isInList ? { ArrowDown: 1, ArrowUp: -1 }[event.key] : undefined
    if (by === undefined && event.key !== 'Escape') return
    event.preventDefault()
    if (by === undefined) leave()
    else step(by)
  }

  /** Follows the inbox and the keyboard until what it returns is called. */
  function start(): () => void {
    const { signal } = stop
    const narrowed = (): void => {
      isNarrow.value = narrow.matches
    }
    const seen = (): void => {
      if (document.hidden) return
      unseen = 0
      document.title = title
    }
    narrow.addEventListener('change', narrowed, { signal })
    document.addEventListener('visibilitychange', seen, { signal })
    addEventListener('popstate', returned, { signal })
    document.addEventListener('keydown', pressed, { signal })
    history.scrollRestoration = 'manual'
    const timer = setInterval(() => !document.hidden && refresh(), ASK_EVERY_MS)
    void follow()
    return () => {
      stop.abort()
      clearInterval(timer)
      document.title = title
      history.scrollRestoration = 'auto'
    }
  }

  return {
    capability,
    ingestUrl: `${location.origin}/c/${publicId}`,
    connection,
    client,
    events,
    counters,
    chosen,
    shown,
    tab,
    focusRow,
    wanted,
    search,
    isVacant: computed(() => events.loaded.value.length === 0 && !events.isFiltered.value),
    start,
    follow,
    refresh,
    remove,
    leaveDetail,
    open(event: CatchEvent, { byKeyboard }: { byKeyboard: boolean }): void {
      choose(event)
      if (byKeyboard || isNarrow.value) focusDetail()
    },
    /** Whoever works in a request wants to keep it, although a newer one comes. */
    holdShown(): void {
      if (shown.value && !isNarrow.value) chosenId.value ??= shown.value.id
    },
    clearFilter(): Promise<void> {
      wanted.value = {}
      search.current?.focus()
      return events.filterBy({})
    },
  }
}
