/** Shows an open inbox: its address and limits in a line, and its requests as they arrive. */
import { type CatchClient, createCatchClient } from '../../client/catch.ts'
import type { CatchCapability, CatchRefusals, CatchStatus } from '../../client/index.ts'
import type { Opened } from '../buying/opener.ts'
import { button, notice } from '../components.ts'
import { el, fill } from '../dom.ts'
import { count } from '../format.ts'
import { attempt, createLive, destroyConfirmed, follow } from '../live.ts'
import { everySecond } from '../service.ts'
import { createAttention } from './attention.ts'
import { createDeletions } from './deletions.ts'
import { createEventBrowser } from './event-browser.ts'
import { createInboxBar } from './inbox-bar.ts'
import { createLesson, testButton } from './lesson.ts'
import { createLoadedEvents } from './loaded-events.ts'
import { listenToKeys, showShortcuts } from './shortcuts.ts'

/** Requests that arrive within this time refresh the counters once. */
const STATUS_DELAY_MS = 400
/** Refused requests do not show by themselves, so the page asks. */
const ASK_EVERY_MS = 20_000

export async function openInbox(
  place: HTMLElement,
  capability: CatchCapability,
  { keeping, onGone, onReplaced, signal }: Opened,
): Promise<void> {
  const live = createLive(signal)
  const inbox = createCatchClient(live.http, capability)
  const ingestUrl = `${location.origin}/c/${capability.publicId}`
  const events = createLoadedEvents(inbox)
  let now = await countersOf(inbox)
  let { latestSequence } = await events.load()
  const lesson = createLesson(ingestUrl)
  const attention = createAttention(signal)
  const bar = createInboxBar(ingestUrl, {
    state: live.state,
    extras: [
      testButton(ingestUrl, 'small'),
      attention.toggle,
      button('Download all', exportAll, { kind: 'small' }),
      button('Keyboard shortcuts', showShortcuts, { kind: 'small' }),
    ],
    onDestroy: destroy,
    onExtend: extend,
    signal,
  })
  const refresh = async (): Promise<void> => {
    now = await countersOf(inbox)
    showCounters()
  }
  function showCounters(): void {
    bar.show(now.status, now.refusals)
    lesson.show(now.status, now.refusals)
  }
  const quietly = (): Promise<void> => refresh().catch(() => undefined)
  const refreshSoon = coalesced(STATUS_DELAY_MS, quietly)
  const deletions = createDeletions(signal)
  const browser = createEventBrowser({
    ...{ inbox, events, ingestUrl, deletions, signal },
    lesson: lesson.element,
    onDeleted: refresh,
  })

  function destroy(): Promise<void> {
    const { acceptedRequestCount: accepted } = now.status
    const received = accepted === 1 ? '1 request' : `${count(accepted)} requests`
    return destroyConfirmed({
      noun: 'inbox',
      loss: `Its address stops working, and all that it keeps of the ${received} it received is deleted for good, with both of its tokens.`,
      publicId: capability.publicId,
      destroy: inbox.destroy,
      onGone,
    })
  }

  function extend(): Promise<void> {
    return attempt(async () => {
      const { showExtension } = await import('../buying/extend.ts')
      const { planId } = now.status
      showExtension({ capability, planId, onExtended: quietly, onReplaced })
    })
  }

  function exportAll(): Promise<void> {
    return attempt(async () => {
      const { showExport } = await import('./export-dialog.ts')
      showExport({ inbox, ingestUrl, publicId: capability.publicId, signal })
    })
  }

  showCounters()
  const problems = el('div', { class: 'inbox-problems' })
  fill(place, el('div', { class: 'inbox-open' }, bar.element, problems, browser.element, keeping))
  everySecond(signal, bar.tick)
  askEvery(ASK_EVERY_MS, { signal, ask: quietly })
  listenToKeys(signal, {
    next: () => browser.step(1),
    previous: () => browser.step(-1),
    search: browser.search,
    copy: browser.copy,
    undo: () => deletions.undoLast(),
    leave: () => bar.closeMenu() || browser.leave(),
    isInList: browser.hasListFocus,
  })

  async function followAll(): Promise<void> {
    await follow(live, inbox.stream({ after: latestSequence, signal }), {
      signal,
      onItem(event) {
        latestSequence = event.sequence
        refreshSoon()
        attention.arrived(event)
        browser.add(event)
      },
      onEnded: refresh,
      onFailed: (why) =>
        fill(
          problems,
          notice('bad', el('p', {}, why), button('Connect again', again, { kind: 'small' })),
        ),
    })
  }

  async function again(): Promise<void> {
    fill(problems)
    await followAll()
  }

  await followAll()
}

type Counters = { status: CatchStatus; refusals: CatchRefusals }

async function countersOf(inbox: CatchClient): Promise<Counters> {
  const [status, refusals] = await Promise.all([inbox.status(), inbox.refusals()])
  return { status, refusals }
}

/** Asks every so often, while somebody looks at the page. */
function askEvery(ms: number, { signal, ask }: { signal: AbortSignal; ask: () => unknown }): void {
  const timer = setInterval(() => {
    if (!document.hidden) ask()
  }, ms)
  signal.addEventListener('abort', () => clearInterval(timer))
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
