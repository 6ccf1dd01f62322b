/** What the HTTP server reports to the metrics, by route pattern: received paths are never labels. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { App } from '../app.ts'
import { Problem } from '../errors.ts'

/** The pattern for requests that matched no route. */
const UNMATCHED = 'none'

/**
 * Makes the observer of one kind of answer. Each is made once, so that a request makes no labels. It gets null
 * for a stream, because the duration of a stream is not a latency.
 */
export type AnswerObserver = (kind: {
  method: string
  route: string
  statusClass: string
}) => (seconds: number | null) => void

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
  const hook = (route: string) => {
    /** By method and status class. Node accepts some forty methods only, so the map stays small. */
    const handles = new Map<string, ((seconds: number | null) => void)[]>()
    return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
      const { method } = request
      let ofMethod = handles.get(method)
      if (!ofMethod) {
        ofMethod = []
        handles.set(method, ofMethod)
      }
      const hundreds = Math.floor(reply.statusCode / 100)
      let handle = ofMethod[hundreds]
      if (!handle) {
        handle = observe({ method, route, statusClass: `${hundreds}xx` })
        ofMethod[hundreds] = handle
      }
      handle(isStream(reply) ? null : reply.elapsedTime / 1000)
      done()
    }
  }
  app.addHook('onRoute', (route) => {
    const others = route.onResponse === undefined ? [] : [route.onResponse].flat()
    route.onResponse = [...others, hook(route.url)]
  })
  const unmatched = hook(UNMATCHED)
  app.addHook('onResponse', (request, reply, done) => {
    if (request.is404) unmatched(request, reply, done)
    else done()
  })
  // biome-ignore lint/complexity/useMaxParams: Fastify calls it.
  app.addHook('onError', (_request, _reply, error: unknown, done) => {
    if (error instanceof Problem && error.phrase === 'rate limited') onRefused(error.limit)
    done()
  })
}
