/** Scopes of routes: what is said of bodies in one is true of its routes alone. */
import type { App } from './app.ts'

/** Fastify looks for the name of a scope without one in all files that are loaded. */
const NAMED = { [Symbol.for('fastify.display-name')]: 'scope' }

/** Mounts routes in a scope of their own. */
export function inScope(app: App, mount: (scope: App) => void): void {
  app.register(Object.assign(async (scope: App) => mount(scope), NAMED))
}
