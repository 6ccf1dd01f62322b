/** The methods that the routes of a path accept. */
import type { FastifyInstance } from 'fastify'

/** Collects the methods as routes are mounted, for `Allow` and for 405. */
export function collectMethods(app: FastifyInstance): (url: string) => string[] {
  const routes = new Map<string, Set<string>>()
  /** Made for the first path that no route has: most services see few of them, and all have many routes. */
  let patterns: { pattern: RegExp; methods: Set<string> }[] | null = null
  app.addHook('onRoute', ({ url, method, config }) => {
    if (config?.isRefused) return
    const methods = routes.get(url) ?? new Set<string>()
    for (const name of [method].flat()) methods.add(name)
    routes.set(url, methods)
  })
  return (url) => {
    const path = url.split('?')[0] ?? ''
    const exact = routes.get(path)
    // A path that is written out is no value of another route's pattern.
    if (exact) return [...exact].sort()
    patterns ??= [...routes].map(([url, methods]) => ({ pattern: patternOf(url), methods }))
    const fitting = patterns.filter(({ pattern }) => pattern.test(path))
    return [...new Set(fitting.flatMap(({ methods }) => [...methods]))].sort()
  }
}

function patternOf(url: string): RegExp {
  const escaped = url.replaceAll(/[.]/g, '\\.').replaceAll(/:\w+/g, '[^/]+')
  return new RegExp(`^${escaped.replace(/\*$/, '.*')}$`)
}
