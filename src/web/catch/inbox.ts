/** Shows an open inbox: its address, its limits, and its requests as they arrive. */
import { createCatchClient } from '../../client/catch.ts'
import type { CatchCapability, CatchStatus } from '../../client/index.ts'
import type { Opened } from '../buying/opener.ts'
import { button, codeBox, notice, usage } from '../components.ts'
import { el, fill } from '../dom.ts'
import { bytes, count } from '../format.ts'
import { createLive, destroyConfirmed, endOf, follow } from '../live.ts'
import { everySecond } from '../service.ts'
import { createEventBrowser } from './event-browser.ts'
import { createLoadedEvents } from './loaded-events.ts'

/** Requests that arrive within this time refresh the counters once. */
const STATUS_DELAY_MS = 400

export async function openInbox(
  place: HTMLElement,
  capability: CatchCapability,
  { keeping, onGone, signal }: Opened,
): Promise<void> {
  const live = createLive()
  const inbox = createCatchClient(live.http, capability)
  const ingestUrl = `${location.origin}/c/${capability.publicId}`
  const events = createLoadedEvents(inbox)
  const limits = limitsView(await inbox.status())
  const { latestSequence } = await events.load()
  const refresh = async (): Promise<void> => limits.show(await inbox.status())
  const refreshSoon = coalesced(STATUS_DELAY_MS, () => refresh().catch(() => undefined))
  const browser = createEventBrowser({ inbox, events, ingestUrl, onDeleted: refresh })

  function destroy(): Promise<void> {
    const more = events.hasOlder() ? ' and more' : ''
    return destroyConfirmed({
      noun: 'inbox',
      loss: `Its address stops working, and all that it holds goes for good: ${count(events.list().length)}${more} requests and both of its tokens.`,
      publicId: capability.publicId,
      destroy: inbox.destroy,
      onGone,
    })
  }

  const card = inboxCard(ingestUrl, { state: live.state, limits, destroy })
  fill(place, el('div', { class: 'stack' }, keeping, card), browser.element)
  everySecond(signal, limits.showExpiry)
  await follow(live, inbox.stream({ after: latestSequence, signal }), {
    signal,
    onItem(event) {
      refreshSoon()
      browser.add(event)
    },
    onEnded: refresh,
    onFailed: (why) => place.prepend(notice('bad', el('p', {}, why))),
  })
}

/** The address of an inbox, its limits, and how to destroy it. */
function inboxCard(
  ingestUrl: string,
  { state, limits, destroy }: { state: HTMLElement; limits: LimitsView; destroy: () => unknown },
): HTMLElement {
  return el(
    'div',
    { class: 'card stack' },
    el('div', { class: 'row between' }, el('h2', {}, 'Send requests here'), state),
    codeBox(ingestUrl, { label: 'the address of the inbox', isWrapped: true }),
    limits.counters,
    el(
      'div',
      { class: 'row between' },
      limits.expiry,
      button('Destroy the inbox', destroy, { kind: 'small danger' }),
    ),
  )
}

type LimitsView = {
  counters: HTMLElement
  expiry: HTMLElement
  show(status: CatchStatus): void
  showExpiry(): void
}

/** How much of the inbox is used, and when it ends. */
function limitsView(initial: CatchStatus): LimitsView {
  let status = initial
  const counters = el('div', { class: 'cards' })
  const expiry = el('p', { class: 'small quiet number' })

  function show(now: CatchStatus): void {
    status = now
    fill(
      counters,
      usage('Requests', { used: now.acceptedRequestCount, limit: now.requestLimit, show: count }),
      usage('Stored', { used: now.storedBytes, limit: now.storageLimitBytes, show: bytes }),
    )
    showExpiry()
  }

  function showExpiry(): void {
    const state = status.status === 'active' ? '' : `This inbox is ${status.status}. `
    expiry.textContent = `${state}Ends ${endOf(status.expiresAt)}. At most ${bytes(status.maxBytesPerRequest)} a request.`
  }

  show(initial)
  return { counters, expiry, show, showExpiry }
}

/** Runs the work once, however often it is requested within the delay. */
function coalesced(delayMs: number, work: () => unknown): () => void {
  let isScheduled = false
  return () => {
    if (isScheduled) return
    isScheduled = true
    setTimeout(() => {
      isScheduled = false
      void work()
    }, delayMs)
  }
}
