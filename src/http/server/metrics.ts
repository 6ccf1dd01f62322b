/** What the HTTP server reports to the metrics, by route pattern: received paths are never labels. */
import type { FastifyReply } from 'fastify'
import type { App } from '../app.ts'
import { Problem } from '../errors.ts'

/** The pattern for requests that matched no route. */
const UNMATCHED = 'none'

/** Gets null for a stream, because the duration of a stream is not a latency. */
export type AnswerObserver = (
  kind: { method: string; route: string; statusClass: string },
  seconds: number | null,
) => void

/**
 * Observes every answer. Must be called before the routes are mounted.
 * @param options.onRefused gets the name of the limit of each 429, or `room`.
 */
export function measureRequests(
  app: App,
  {
    observe,
    isStream,
    onRefused,
  }: {
    observe: AnswerObserver
    isStream: (reply: FastifyReply) => boolean
    onRefused: (limit: string) => void
  },
): void {
  app.addHook('onResponse', ({ method, routeOptions }, reply, done) => {
    const statusClass = `${Math.floor(reply.statusCode / 100)}xx`
    const seconds = isStream(reply) ? null : reply.elapsedTime / 1000
    observe({ method, route: routeOptions.url ?? UNMATCHED, statusClass }, seconds)
    done()
  })
  // biome-ignore lint/complexity/useMaxParams: Fastify calls it.
  app.addHook('onError', (_request, _reply, error: unknown, done) => {
    if (error instanceof Problem && error.phrase === 'rate limited') onRefused(error.limit)
    done()
  })
}
