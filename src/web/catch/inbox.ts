/** An inbox that is open: its limits, its requests as they come, and one of them. */
import { createCatchClient } from '../../client/catch.ts'
import { type EventFilter, matchesFilter } from '../../client/event-filter.ts'
import type { CatchCapability, CatchEvent, CatchStatus } from '../../client/index.ts'
import { forget } from '../buying/capability.ts'
import type { Opened } from '../buying/opener.ts'
import { button, codeBox, confirmed, notice, toast, usage } from '../components.ts'
import { byId, el, fill } from '../dom.ts'
import { plainly } from '../foreign.ts'
import { bytes, count, moment, remaining, sentence } from '../format.ts'
import { clock } from '../service.ts'
import { type Connection, watchedService } from '../watched.ts'
import { createEventList } from './event-list.ts'
import { eventView } from './event-view.ts'
import { filterForm } from './filters.ts'

/** A few requests in a row ask for the counters once. */
const STATUS_DELAY_MS = 400

export async function openInbox(
  place: HTMLElement,
  capability: CatchCapability,
  { keeping, onGone, signal }: Opened,
): Promise<void> {
  const inbox = createCatchClient(watchedService(showConnection), capability)
  const ingestUrl = `${location.origin}/c/${capability.publicId}`

  const connection = el('p', { class: 'state', role: 'status' }, 'Connecting…')
  const counters = el('div', { class: 'cards' })
  const expiry = el('p', { class: 'small quiet number' })
  const list = createEventList(choose)
  const nothing = el('p', { class: 'quiet' })
  const more = button('Older', loadOlder, { kind: 'wide' })
  const detail = el('div', {})
  const said = el('p', { class: 'visually-hidden', 'aria-live': 'polite' })
  const two = el('div', { class: 'two' })

  let filter: EventFilter = {}
  let shown: CatchEvent[] = []
  let older: number | null = null
  let chosen: CatchEvent | null = null
  let isCounting = false

  const status = await inbox.status()
  const { latestSequence } = await load()
  two.append(
    el(
      'div',
      { class: 'stack' },
      filterForm((query) => {
        filter = query
        return reload()
      }),
      list.element,
      nothing,
      more,
      said,
    ),
    detail,
  )
  fill(
    place,
    el(
      'div',
      { class: 'stack' },
      keeping,
      el(
        'div',
        { class: 'card stack' },
        el('div', { class: 'row between' }, el('h2', {}, 'Send requests here'), connection),
        codeBox(ingestUrl, { label: 'the address of the inbox', isWrapped: true }),
        counters,
        el(
          'div',
          { class: 'row between' },
          expiry,
          button('Destroy the inbox', destroy, { kind: 'small danger' }),
        ),
      ),
    ),
    two,
  )
  showStatus(status)
  showList()
  showDetail()
  const tick = setInterval(() => showExpiry(), 1_000)
  signal.addEventListener('abort', () => clearInterval(tick))
  await listen(latestSequence)

  async function listen(after: number): Promise<void> {
    try {
      const events = inbox.stream({ after, signal })
      for (;;) {
        const next = await events.next()
        if (next.done) break
        arrived(next.value)
      }
      showStatus(await inbox.status())
    } catch (error) {
      if (signal.aborted) return
      place.prepend(notice('bad', el('p', {}, sentence(error))))
    }
    showConnection('lost')
    connection.textContent = 'Closed'
  }

  function arrived(event: CatchEvent): void {
    if (!isCounting) {
      isCounting = true
      setTimeout(async () => {
        isCounting = false
        showStatus(await inbox.status().catch(() => status))
      }, STATUS_DELAY_MS)
    }
    if (!matchesFilter(event, filter) || shown.some(({ id }) => id === event.id)) return
    shown = [event, ...shown]
    said.textContent = `New request: ${event.method} ${plainly(event.path)}`
    showList()
    if (!chosen) showDetail()
  }

  async function load(cursor?: number): Promise<{ latestSequence: number }> {
    const asked = filter
    const page = await inbox.page({ ...asked, ...(cursor === undefined ? {} : { cursor }) })
    // Another filter was chosen meanwhile, and has its own answer.
    if (asked !== filter) return page
    // What came while this was on its way is not in it.
    const fresher = shown.filter(
      (event) => event.sequence > page.latestSequence && matchesFilter(event, asked),
    )
    shown = cursor === undefined ? [...fresher, ...page.events] : [...shown, ...page.events]
    older = page.nextCursor
    return page
  }

  async function reload(): Promise<void> {
    await attempt(async () => {
      await load()
      showList()
    })
  }

  function showList(): void {
    list.show(shown)
    list.mark(chosen)
    const isFiltered = Object.keys(filter).length > 0
    nothing.textContent = isFiltered ? 'Nothing fits this filter.' : 'No requests yet.'
    nothing.hidden = shown.length > 0
    more.hidden = older === null
  }

  function loadOlder(): Promise<void> {
    return attempt(async () => {
      const { length } = shown
      await load(older ?? undefined)
      showList()
      // The button is gone then, and the keyboard would start over at the top.
      if (older === null) list.focus(shown[length]?.id)
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

  function showDetail(): void {
    two.classList.toggle('reading', chosen !== null || shown.length === 0)
    const event = chosen
    if (event) {
      fill(
        detail,
        eventView(event, {
          ingestUrl,
          onDelete: () => remove(event),
          onBack: () => choose(null),
        }),
      )
    } else if (shown.length > 0) {
      fill(detail, el('p', { class: 'card quiet' }, 'Choose a request to see it whole.'))
    } else fill(detail, lesson(ingestUrl))
  }

  async function remove(event: CatchEvent): Promise<void> {
    await attempt(async () => {
      await inbox.deleteEvent(event.id)
      shown = shown.filter(({ id }) => id !== event.id)
      showList()
      choose(null)
      toast('Deleted for good')
      showStatus(await inbox.status())
    })
  }

  async function destroy(): Promise<void> {
    const isWanted = await confirmed('Destroy this inbox?', {
      body: `Its address stops working, and all that it holds goes for good: ${count(shown.length)}${older === null ? '' : ' and more'} requests and both of its tokens. Nothing is paid back.`,
      action: 'Destroy it',
    })
    if (!isWanted) return
    await attempt(async () => {
      await inbox.destroy()
      forget(capability.publicId)
      toast('The inbox is destroyed')
      onGone()
    })
  }

  function showStatus(now: CatchStatus): void {
    Object.assign(status, now)
    fill(
      counters,
      usage('Requests', { used: now.acceptedRequestCount, limit: now.requestLimit, show: count }),
      usage('Stored', { used: now.storedBytes, limit: now.storageLimitBytes, show: bytes }),
    )
    showExpiry()
  }

  function showExpiry(): void {
    const left = Date.parse(status.expiresAt) - clock.now()
    const end = `${moment(status.expiresAt)} (${left > 0 ? `in ${remaining(left)}` : 'over'})`
    const state = status.status === 'active' ? '' : `This inbox is ${status.status}. `
    expiry.textContent = `${state}Ends ${end}. At most ${bytes(status.maxBytesPerRequest)} a request.`
  }

  function showConnection(state: Connection): void {
    connection.dataset.state = state
    connection.textContent = state === 'live' ? 'Live' : 'Connection lost, trying again…'
  }
}

async function attempt(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    toast(sentence(error))
  }
}

/** What an inbox shows before anything has come. */
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
