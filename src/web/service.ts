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

/** Fetches from the service, and sets the clock by each answer. */
export const timedFetch: typeof globalThis.fetch = async (...request) => {
  const answer = await platformFetch(...request)
  clock.answered(answer.headers.get('date'))
  return answer
}

/** Each page imports only the clients that it needs, because the whole SDK is larger than most pages. */
export const service = createHttp(location.origin, timedFetch)

/** @param onReach is called after each request, with whether the service was able to answer it. */
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

/** The plans that are on sale now. */
export async function catalog(): Promise<Catalog> {
  return (await service.get({ path: '/api/catalog' })) as Catalog
}
