/** The methods that the routes of a path accept. */
import type { FastifyInstance } from 'fastify'

/** Collects the methods as routes are mounted, for `Allow` and for 405. */
export function collectMethods(app: FastifyInstance): (url: string) => string[] {
  const routes = new Map<string, { pattern: RegExp; methods: Set<string> }>()
  app.addHook('onRoute', ({ url, method, config }) => {
    if (config?.isRefused) return
    const escaped = url.replaceAll(/[.]/g, '\\.').replaceAll(/:\w+/g, '[^/]+')
    const pattern = new RegExp(`^${escaped.replace(/\*$/, '.*')}$`)
    const route = routes.get(url) ?? { pattern, methods: new Set<string>() }
    for (const name of [method].flat()) route.methods.add(name)
    routes.set(url, route)
  })
  return (url) => {
    const path = url.split('?')[0] ?? ''
    const exact = routes.get(path)
    // A path that is written out is no value of another route's pattern.
    if (exact) return [...exact.methods].sort()
    const methods = new Set<string>()
    for (const { pattern, methods: some } of routes.values()) {
      if (pattern.test(path)) for (const method of some) methods.add(method)
    }
    return [...methods].sort()
  }
}
