/** The service of these pages, through the parts of the SDK that a page needs. */
import { createHttp, type Http, platformFetch } from '../client/http.ts'
import type { Catalog } from '../client/index.ts'
import { createServerClock } from './server-clock.ts'

/** The clock that all expiries use. Each answer sets it. */
export const clock = createServerClock()

/** Runs work now and every second, until the signal aborts. */
export function everySecond(signal: AbortSignal, work: () => void): void {
  work()
  const timer = setInterval(work, 1_000)
  signal.addEventListener('abort', () => clearInterval(timer))
}

/** A fetch from the service, from whose answers the clock is set. */
export const timedFetch: typeof globalThis.fetch = async (...request) => {
  const answer = await platformFetch(...request)
  clock.answered(answer.headers.get('date'))
  return answer
}

/** Each page takes what it needs on top of this: all of the SDK would weigh more than most pages. */
export const service = createHttp(location.origin, timedFetch)

/** @param onReach is told after each request whether the service could take it. */
export function watchfulService(onReach: (isReached: boolean) => void): Http {
  return createHttp(location.origin, async (input, init) => {
    try {
      const answer = await timedFetch(input, init)
      onReach(answer.status < 500)
      return answer
    } catch (error) {
      onReach(false)
      throw error
    }
  })
}

/** What is on sale now. */
export async function catalog(): Promise<Catalog> {
  return (await service.get({ path: '/api/catalog' })) as Catalog
}
