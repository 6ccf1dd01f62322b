/**
 * Gives a route the bytes of its body. Fastify reads them whole, within a limit, so this is for callers with a
 * token. Bodies that anyone may send are read by `body.ts`, which can charge them to a memory budget.
 */
import type { FastifyRequest } from 'fastify'
import { parseStrictJsonBytes } from '../lib/json.ts'
import type { App } from './app.ts'

/** Takes bodies of these types as bytes in a scope of its own, and refuses all others. */
export function parseAsBytes(
  scope: App,
  { contentTypes, maxBytes }: { contentTypes: string[]; maxBytes: number },
): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser(
    contentTypes,
    { parseAs: 'buffer', bodyLimit: maxBytes },
    (_request, body, done) => done(null, body),
  )
}

/** Takes bodies of JSON alone, in which no object has a member twice. The library would take the last one. */
export function parseStrictJson(scope: App): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
    const value = parseStrictJsonBytes(body as Buffer)
    if (value === undefined) done(new InvalidJson())
    else done(null, value)
  })
}

/** Named like the library's own errors, which the answer is made by. */
class InvalidJson extends Error {
  readonly code = 'FST_ERR_CTP_INVALID_JSON_BODY'
}

/** The body of a request to such a route; empty if there is none. */
export const rawBody = ({ body }: FastifyRequest): Buffer =>
  Buffer.isBuffer(body) ? body : Buffer.alloc(0)
