/** Shows the live stream of an open capability, its remaining time, and its end. */
import { createHttp, type Http } from '../client/http.ts'
import { forget } from './buying/keeping.ts'
import { confirmed, toast } from './components.ts'
import { el } from './dom.ts'
import { duration, moment, sentence } from './format.ts'
import { clock, timedFetch } from './service.ts'

export type Live = {
  /** The service; the state of its streams is shown. */
  http: Http
  /** Shows the state of the stream. */
  state: HTMLElement
  showClosed(): void
}

export function createLive(signal: AbortSignal): Live {
  const state = el('p', { class: 'state', role: 'status' }, 'Connecting…')
  let isLost = false
  const show = (name: 'live' | 'lost', text: string): void => {
    state.dataset.state = name
    state.textContent = text
  }
  // Says whose network it is, also when that changes while nothing is received.
  const showLost = (): void =>
    show('lost', navigator.onLine ? 'Connection lost. Retrying…' : 'You are offline. Waiting…')
  const networkChanged = (): void => {
    if (isLost) showLost()
  }
  addEventListener('online', networkChanged, { signal })
  addEventListener('offline', networkChanged, { signal })
  const http = createHttp(location.origin, async (input, init) => {
    const answer = timedFetch(input, init)
    if (!String(input).endsWith('/stream')) return answer
    return watched(answer, {
      onLive() {
        isLost = false
        show('live', 'Live')
      },
      onLost() {
        isLost = true
        showLost()
      },
    })
  })
  return {
    http,
    state,
    showClosed() {
      isLost = false
      show('lost', 'Closed')
    },
  }
}

export type Follower<Item> = {
  signal: AbortSignal
  onItem: (item: Item) => void
  /** Called when the service has ended the stream. */
  onEnded?: () => Promise<void>
  onFailed: (why: string) => void
}

/** Follows a stream until it ends, fails or is aborted. */
export async function follow<Item>(
  live: Live,
  items: AsyncIterable<Item>,
  { signal, onItem, onEnded, onFailed }: Follower<Item>,
): Promise<void> {
  try {
    for await (const item of items) onItem(item)
    if (!signal.aborted) await onEnded?.()
  } catch (error) {
    if (!signal.aborted) onFailed(sentence(error))
  }
  if (!signal.aborted) live.showClosed()
}

/** A text that says when something ends, and in how much time. */
export function endOf(expiresAt: string): string {
  const left = Date.parse(expiresAt) - clock.now()
  return `${moment(expiresAt)} (${left > 0 ? `in ${duration(left)}` : 'expired'})`
}

/** Asks for confirmation, then destroys a capability. */
export async function destroyConfirmed({
  noun,
  loss,
  publicId,
  destroy,
  onGone,
}: {
  /** What is destroyed, such as `inbox`. */
  noun: string
  /** A sentence about what is lost. */
  loss: string
  publicId: string
  destroy: () => Promise<void>
  onGone: () => void
}): Promise<void> {
  const isWanted = await confirmed(`Destroy this ${noun}?`, {
    body: `${loss} There is no refund.`,
    action: 'Destroy it',
  })
  if (!isWanted) return
  await attempt(async () => {
    await destroy()
    forget(publicId)
    toast(`The ${noun} was destroyed`)
    onGone()
  })
}

/** Runs work, and shows the error if it fails. */
export async function attempt(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    toast(sentence(error))
  }
}

/** Returns the same answer. Calls `onLive` when its stream opens, and `onLost` when it ends or fails. */
async function watched(
  answering: Promise<Response>,
  { onLive, onLost }: { onLive: () => void; onLost: () => void },
): Promise<Response> {
  try {
    const answer = await answering
    if (!answer.ok || !answer.body) return answer
    onLive()
    const reader = answer.body.getReader()
    const body = new ReadableStream<Uint8Array>({
      async pull(stream) {
        try {
          const { done, value } = await reader.read()
          if (!done) return stream.enqueue(value)
          onLost()
          stream.close()
        } catch (error) {
          onLost()
          stream.error(error)
        }
      },
      cancel: (reason) => reader.cancel(reason),
    })
    return new Response(body, { status: answer.status, headers: answer.headers })
  } catch (error) {
    onLost()
    throw error
  }
}
