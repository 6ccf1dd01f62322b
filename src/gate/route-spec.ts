/** A priced route of a project, in the operator's syntax: `render=POST:/render/*:50`. */
import { isPattern } from './patterns.ts'

export type RouteSpec = { routeId: string; method: string; pattern: string; priceSats: number }

/** HEAD and OPTIONS are never sold, since their answers have no content. */
const METHODS: readonly string[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
/** One bitcoin. A greater price is a typo. */
const MAX_PRICE_SATS = 100_000_000

/** Parses a route. @throws Error that says which part is wrong. */
export function parseRouteSpec(text: string): RouteSpec {
  const [, routeId = '', method = '', pattern = '', price = ''] =
    /^([^=]*)=([^:]*):(.*):([^:]*)$/.exec(text) ?? []
  if (!isRouteId(routeId)) {
    throw new Error(
      'a route reads `<id>=<method>:<path>:<sats>`, such as `render=POST:/render/*:50`; ' +
        'its id is 1 to 64 letters, digits, `-` and `_`',
    )
  }
  if (!METHODS.includes(method)) {
    throw new Error(`the method of route ${routeId} must be one of ${METHODS.join(', ')}`)
  }
  if (!isPattern(pattern)) {
    throw new Error(
      `the path of route ${routeId} must start with \`/\`, without query, dot segments, empty ` +
        'segments or encoded slashes; `*` stands for one segment, `**` at the end for the rest',
    )
  }
  const priceSats = /^[1-9]\d{0,8}$/.test(price) ? Number(price) : 0
  if (priceSats < 1 || priceSats > MAX_PRICE_SATS) {
    throw new Error(
      `the price of route ${routeId} must be whole satoshis, from 1 to ${MAX_PRICE_SATS}`,
    )
  }
  return { routeId, method, pattern, priceSats }
}

export function isRouteId(text: string): boolean {
  return /^[A-Za-z0-9_-]{1,64}$/.test(text)
}
