/** The service of these pages, through the parts of the SDK that a page needs, and its time. */
import { signal } from '@preact/signals'
import { createHttp, type Http, platformFetch, retryAfterSeconds } from '../../client/http.ts'
import type { Catalog } from '../../client/index.ts'

/** How far the service's clock is ahead of this computer's, which may be wrong, in milliseconds. */
let ahead = 0

/** The time by the service's clock, as far as its answers tell. */
export const clock = {
  now: (): number => Date.now() + ahead,
  /** An answer had this `Date`. It has whole seconds, so small differences are ignored. */
  answered(date: string | null): void {
    const difference = Date.parse(date ?? '') - Date.now()
    if (Number.isNaN(difference)) return
    const was = ahead
    ahead = Math.abs(difference) > 2_000 ? difference : 0
    // What follows the answer is drawn and counted by its time, not by that of the last tick.
    if (ahead !== was) now.value = clock.now()
  },
}

/** The time by the service's clock, each second: what reads it is drawn again. */
export const now = signal(Date.now())
setInterval(() => {
  now.value = clock.now()
}, 1_000)

/** Fetches from the service, and sets the clock by each answer. */
export const timedFetch: typeof globalThis.fetch = async (...request) => {
  const answer = await platformFetch(...request)
  clock.answered(answer.headers.get('date'))
  return answer
}

/** Each page imports only the clients that it needs, because the whole SDK is larger than most pages. */
export const service: Http = createHttp(location.origin, timedFetch)

/** Whether this browser has a network. */
export const isOnline = signal(globalThis.navigator?.onLine !== false)
globalThis.addEventListener?.('online', () => {
  isOnline.value = true
})
globalThis.addEventListener?.('offline', () => {
  isOnline.value = false
})

/** The whole seconds until a time by the service's clock, or 0. */
export const secondsUntil = (at: number): number => Math.max(0, Math.ceil((at - now.value) / 1_000))

/** How a request went: its status, 0 without an answer, and from when the service wants the next one. */
export type Reach = { status: number; againAt: number }

export const isTroubled = ({ status }: Reach): boolean =>
  status === 0 || status === 429 || status >= 500

/** @param onReach is called after each request. */
export function watchfulService(onReach: (reach: Reach) => void): Http {
  return createHttp(location.origin, async (input, init) => {
    try {
      const answer = await timedFetch(input, init)
      const pause = retryAfterSeconds(answer.headers) ?? 0
      onReach({ status: answer.status, againAt: now.peek() + pause * 1_000 })
      return answer
    } catch (error) {
      if (init?.signal?.aborted !== true) onReach({ status: 0, againAt: 0 })
      throw error
    }
  })
}

/** The plans that are on sale now. */
export async function catalog(): Promise<Catalog> {
  return (await service.get({ path: '/api/catalog', isRepeatable: true })) as Catalog
}

export const isSimulator: boolean =
  globalThis.document?.documentElement.dataset.mode === 'simulator'
