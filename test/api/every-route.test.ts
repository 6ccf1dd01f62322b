/** What all operations of the documents have in common: methods, browsers, caches, limits, tokens and refusals. */
import assert from 'node:assert/strict'
import { before, suite, test } from 'node:test'
import { ask, assertError } from '../support/http.ts'
import { type Operation, openapi } from '../support/openapi.ts'
import { startServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'

const GATE = { MAYFLY_GATE: 'on' }
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'QUERY']
/** What pages of others may call. The rest is for machines of the operator and for the simulator. */
const FOR_BROWSERS = /^\/(?:api|c|w|p|\.well-known)\//
/** Public keys, the only answer that a cache may keep. */
const CACHEABLE = '/.well-known/gate-jwks.json'

type Route = { path: string; method: string; operation: Operation; target: string }

const routes: Route[] = []
before(async () => {
  const endings: (() => unknown)[] = []
  const server = await startServer({ after: (end) => void endings.push(end) }, GATE)
  const { paths } = await openapi(server, '/openapi-all.json')
  for (const end of endings) await end()
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      routes.push({
        path,
        method: method.toUpperCase(),
        operation,
        target: targetOf(path, operation),
      })
    }
  }
})

/** The path with its examples. Nothing of theirs exists in a new service. */
function targetOf(path: string, { parameters = [] }: Operation): string {
  return path.replace(/\{(\w+)\}/g, (_, wanted) => {
    const found = parameters.find(({ name, in: place }) => name === wanted && place === 'path')
    return encodeURIComponent(String(found?.example ?? assert.fail(`${path} has no ${wanted}`)))
  })
}

/** The operation's own example, whole: its headers and its body. */
function exampleOf({ parameters = [], requestBody }: Operation): { headers: string; body: string } {
  const given = parameters
    .filter(({ in: place, required }) => place === 'header' && required)
    .map(({ name, example }) => `${name}: ${example}\r\n`)
  const [[type, media] = []] = Object.entries(requestBody?.content ?? {})
  if (type === undefined || media === undefined) return { headers: given.join(''), body: '' }
  const [inside] = 'examples' in media.schema ? (media.schema.examples as unknown[]) : []
  const example = media.example ?? inside
  const body = typeof example === 'string' ? example : JSON.stringify(example)
  const length = `Content-Length: ${Buffer.byteLength(body)}\r\n`
  return { headers: `${given.join('')}Content-Type: ${type}\r\n${length}`, body }
}

suite('every operation', () => {
  const theServer = shareServer(GATE)

  test('every operation lets no cache keep its answer, and lets pages of others read it or nobody', async () => {
    const { url } = await theServer()
    for (const { path, method, target, operation } of routes) {
      const answer = await ask(url, `${method} ${target}`, exampleOf(operation))
      const note = `${method} ${path}: ${answer.status}`
      if (path !== CACHEABLE)
        assert.match(answer.headers.get('cache-control') ?? '', /\bno-store$/, note)
      assert.equal(answer.headers.get('x-content-type-options'), 'nosniff', note)
      const open = FOR_BROWSERS.test(path) ? '*' : null
      assert.equal(answer.headers.get('access-control-allow-origin'), open, note)
      assert.ok(answer.status < 500, note)
    }
  })

  test('every path takes the methods of its operations, and any other is 405 and told which', async () => {
    const { url } = await theServer()
    for (const [path, some] of Object.entries(Object.groupBy(routes, ({ path }) => path))) {
      const taken = (some ?? []).map(({ method }) => method).toSorted()
      const target = some?.[0]?.target ?? ''
      for (const method of METHODS.filter((one) => !taken.includes(one))) {
        const answer = await ask(url, `${method} ${target}`)
        assert.equal(answer.headers.get('allow'), taken.join(', '), `${method} ${path}`)
        if (method === 'HEAD') assert.deepEqual([answer.status, answer.body], [405, ''], path)
        else assertError(answer, '405 method not allowed', `${method} ${path}`)
      }
    }
  })

  test('every preflight of a page is answered before anything else, where pages may call', async () => {
    const { url } = await theServer()
    for (const { path, method, target } of routes) {
      const headers = `Origin: https://a.test\r\nAccess-Control-Request-Method: ${method}\r\n`
      const { status, headers: told } = await ask(url, `OPTIONS ${target}`, { headers })
      const note = `${method} ${path}`
      if (!FOR_BROWSERS.test(path)) {
        assert.equal(status, 405, note)
        continue
      }
      assert.equal(status, 204, note)
      assert.ok(told.get('access-control-allow-methods')?.split(', ').includes(method), note)
    }
  })
})
