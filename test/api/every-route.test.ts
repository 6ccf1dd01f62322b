/** What all operations of the documents have in common: methods, browsers, caches, limits, tokens and refusals. */
import assert from 'node:assert/strict'
import { before, suite, test } from 'node:test'
import type { TokenKind } from '../../src/lib/ids.ts'
import { ALL_LIMITS } from '../../src/service/products.ts'
import { openOrder } from '../support/buying.ts'
import { anInbox } from '../support/catch.ts'
import { jsonFile } from '../support/folder.ts'
import { register } from '../support/gate.ts'
import { ask, assertError } from '../support/http.ts'
import { limited } from '../support/limits.ts'
import { type Operation, openapi, type Parameter } from '../support/openapi.ts'
import { aMonitor } from '../support/pulse.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { aToken, typo } from '../support/tokens.ts'
import { aWhisper } from '../support/whisper.ts'
import { createConformance, fits, type Reply } from './conformance.ts'

const GATE = { MAYFLY_GATE: 'on' }
const METHODS = [
  ...['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'QUERY'],
  ...['PROPFIND', 'M-SEARCH'],
]
/** What no document has. */
const PAGES = [
  ...['/', '/buy', '/catch', '/gate', '/docs', '/whisper', '/receipt', '/read', '/pulse'],
  ...['/status/pulse_status_0000000000000000000000', '/llms.txt', '/openapi.json'],
]
const BELOW_AN_INBOX = '/c/catch_0000000000000000000000/sub/path'
/** What pages of others may call. The rest is for machines of the operator and for the simulator. */
const FOR_BROWSERS = /^\/(?:api|c|w|p|\.well-known)\//
/** Public keys, the only answer that a cache may keep. */
const CACHEABLE = '/.well-known/gate-jwks.json'

/** What a preflight allows if it names no headers, or none that can be. */
const OURS =
  'Authorization, Content-Type, Idempotency-Key, Accept-Payment, Accept-Authenticate, ' +
  'Payment-Preimage, X-Payment-Protocol, X-Owner-Token, X-Whisper-Plan, X-Whisper-Max-Bytes, X-Whisper-Read-Limit, X-Whisper-Receipt, ' +
  'X-Whisper-Reveal-At, X-Whisper-Reveal-When, X-Pulse-Settings, X-Gate-Project, X-Gate-Route, X-Gate-Method, X-Gate-Path'
/** Each limit lets one pass. */
const ONCE = Object.fromEntries(ALL_LIMITS.map(({ name }) => [name, { perMinute: 1, burst: 1 }]))

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
  const given = headersOf(parameters)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
  const [type] = Object.keys(requestBody?.content ?? {})
  const body = bodyOf(requestBody)
  const length = `Content-Length: ${Buffer.byteLength(body)}\r\n`
  return type
    ? { headers: `${given}Content-Type: ${type}\r\n${length}`, body }
    : { headers: given, body }
}

const headersOf = (parameters: Parameter[] = []): [name: string, value: string][] =>
  parameters
    .filter(({ in: place, required }) => place === 'header' && required)
    .map(({ name, example }) => [name, String(example)])

function bodyOf(requestBody: Operation['requestBody']): string {
  const [media] = Object.values(requestBody?.content ?? {})
  const [inside] = media && 'examples' in media.schema ? (media.schema.examples as unknown[]) : []
  const example = media?.example ?? inside ?? ''
  return typeof example === 'string' ? example : JSON.stringify(example)
}

test('every operation reads as a method, and each parameter, header and body has a fitting example', () => {
  assert.ok(routes.length > 30)
  for (const { operation } of routes) {
    const { operationId: id, security, parameters = [], requestBody, responses } = operation
    assert.match(id, /^[a-z]+[A-Z][A-Za-z0-9]+$/)
    assert.ok(operation.description.length > operation.summary.length / 2, id)
    assert.ok(Array.isArray(security), id)
    for (const { name, description, schema, example } of parameters) {
      assert.ok(description, `${id} ${name}`)
      assert.ok(fits(schema, example), `${id} ${name}: ${example}`)
      // Tools send it as it is, and a header has only these.
      assert.match(String(example), /^[\x20-\x7e]+$/, `${id} ${name}`)
    }
    for (const [type, { schema, example }] of Object.entries(requestBody?.content ?? {})) {
      const [inside] = 'examples' in schema ? (schema.examples as unknown[]) : []
      assert.ok(fits(schema, example ?? inside), `${id} ${type}`)
    }
    for (const [status, { headers = {}, content = {} }] of Object.entries(responses)) {
      for (const [type, { schema, example }] of Object.entries(content)) {
        const [inside] = 'examples' in schema ? (schema.examples as unknown[]) : []
        assert.ok(fits(schema, example ?? inside), `${id} ${status} ${type}`)
      }
      for (const [name, { description, schema, example }] of Object.entries(headers)) {
        assert.ok(description && fits(schema, example), `${id} ${name}: ${example}`)
      }
    }
  }
})

test('the description says which Idempotency-Keys are refused', () => {
  const keys = routes.flatMap(({ operation: { operationId: id, parameters = [] } }) =>
    parameters
      .filter(({ name }) => name === 'idempotency-key')
      .map(({ schema }) => ({ id, schema })),
  )
  assert.ok(keys.length > 5)
  for (const { id, schema } of keys) {
    assert.ok(fits(schema, 'order 01 of today'), id)
    for (const refused of ['1234567', 'x'.repeat(129), ' order-01', 'bestellung-ä']) {
      assert.ok(!fits(schema, refused), `${id}: ${refused}`)
    }
  }
})

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

  test('every path takes its own methods, and any other is 405 and told which', async () => {
    const { url } = await theServer()
    const paths = new Map(PAGES.map((path) => [path, ['GET', 'HEAD']]))
    for (const [, some] of Object.entries(Object.groupBy(routes, ({ path }) => path))) {
      const taken = (some ?? []).map(({ method }) => method).toSorted()
      paths.set(some?.[0]?.target ?? '', taken)
      if (some?.[0]?.path === '/c/{publicId}') paths.set(BELOW_AN_INBOX, taken)
    }
    for (const [path, taken] of paths) {
      for (const method of METHODS) {
        for (const sent of [{}, UNREADABLE]) {
          const answer = await ask(url, `${method} ${path}`, sent)
          const note = `${method} ${path}: ${answer.status}`
          if (taken.includes(method)) {
            assert.ok(answer.status !== 405 && answer.status < 500, note)
            continue
          }
          assert.equal(answer.headers.get('allow'), taken.join(', '), note)
          if (method === 'HEAD') assert.deepEqual([answer.status, answer.body], [405, ''], note)
          else assertError(answer, '405 method not allowed', note)
        }
      }
    }
  })

  test('every preflight of a page is answered before anything else, where pages may call, and takes from no limit', async (t) => {
    const { url } = await limited(t, ONCE, GATE)
    for (const { path, method, target } of routes) {
      const headers = `Origin: https://a.test\r\nAccess-Control-Request-Method: ${method}\r\nAccess-Control-Request-Headers: authorization,x-any\r\n`
      const { status, headers: told } = await ask(url, `OPTIONS ${target}`, { headers })
      const note = `${method} ${path}`
      if (!FOR_BROWSERS.test(path)) {
        assert.equal(status, 405, note)
        continue
      }
      assert.deepEqual([status, told.get('ratelimit')], [204, null], note)
      assert.equal(told.get('access-control-allow-headers'), 'authorization,x-any', note)
      assert.ok(told.get('access-control-allow-methods')?.split(', ').includes(method), note)
    }
    assert.equal((await ask(url, 'GET /api/catalog')).status, 200)
    assert.equal((await ask(url, 'GET /api/catalog')).status, 429)
  })

  test('a preflight cannot put a header of its own into the answer', async () => {
    const { url } = await theServer()
    for (const asked of ['a: b', '(x)', 'é', 'x'.repeat(3_000)]) {
      const { headers } = await ask(url, 'OPTIONS /api/catalog', {
        headers: `Origin: https://a.test\r\nAccess-Control-Request-Method: GET\r\nAccess-Control-Request-Headers: ${asked}\r\n`,
      })
      assert.equal(headers.get('access-control-allow-headers'), OURS)
    }
  })

  test('a page of others may read what is below the API, also where nothing is, and nothing else', async () => {
    const { url } = await theServer()
    const api = ['/api/nowhere', '/api/%zz', 'http://mayfly.test/api/catalog', '/openapi.json']
    for (const path of [...api, '/nowhere']) {
      const { headers } = await ask(url, `GET ${path}`)
      const open = api.includes(path) ? '*' : null
      assert.equal(headers.get('access-control-allow-origin'), open, path)
    }
  })
})

/** What opens an operation with a bearer token, and the other tokens of the same capability, which do not. */
type Own = {
  kind: TokenKind
  token: string
  others: string[]
  publicId?: string
  projectId?: string
}

/** Capabilities of all products, by the beginning of the paths that they open. */
async function capabilities(server: TestServer): Promise<Record<string, Own>> {
  const [inbox, monitor, whisper, project] = await Promise.all([
    anInbox(server),
    aMonitor(server),
    aWhisper(server, { headers: { 'x-whisper-receipt': 'on' } }),
    register(server),
  ])
  const { ownerToken, ingestToken } = inbox
  const { readToken, receiptToken = '' } = whisper
  const ofInbox = { token: ownerToken, others: [ingestToken], publicId: inbox.publicId }
  const [owner, pinging] = [monitor.ownerToken, monitor.pingToken]
  const { publicId } = monitor
  const ofWhisper = { publicId: whisper.publicId }
  const { projectId, capability } = project
  return {
    '/api/catch/': { kind: 'catch_owner', ...ofInbox },
    '/api/pulse/': { kind: 'pulse_owner', token: owner, others: [pinging], publicId },
    '/p/': { kind: 'pulse_ping', token: pinging, others: [owner], publicId },
    '/w/': { kind: 'whisper_read', token: readToken, others: [receiptToken], ...ofWhisper },
    '/api/whisper/': {
      kind: 'whisper_receipt',
      token: receiptToken,
      others: [readToken],
      ...ofWhisper,
    },
    '/api/gate/': { kind: 'gate_key', token: capability, others: [], projectId },
  }
}

/** The capability of an operation, and its target there. */
function ownOf({ path, target }: Route, all: Record<string, Own>): { own: Own; target: string } {
  const [root] = /^\/(?:api\/\w+|\w)\//.exec(path) ?? ['']
  const own = all[root] ?? assert.fail(`${path} has no capability`)
  const [, id = ''] = path.includes('{publicId}') ? target.slice(root.length - 1).split('/') : []
  return { own, target: target.replace(id, own.publicId ?? id) }
}

const needsBearer = ({ security }: Operation): boolean =>
  security.length > 0 && security.every((way) => 'bearer' in way)

/** What is not the one bearer token of a capability. */
const notTheToken = ({ token, others }: Own): [note: string, lines: string[]][] => [
  ['no token', []],
  ['an empty header', ['']],
  ['a scheme without a token', ['Bearer']],
  ['a bare token', [token]],
  ['another scheme', [`Basic ${token}`]],
  ['a token and more', [`Bearer ${token} ${token}`]],
  ['a list of tokens', [`Bearer ${token}, Bearer ${token}`]],
  ['two headers', [`Bearer ${token}`, `Bearer ${token}`]],
  ['a token that is none', ['Bearer x']],
  ['a typo', [`Bearer ${typo(token)}`]],
  ['a token cut short', [`Bearer ${token.slice(0, -1)}`]],
  ['a token of another product', [`Bearer ${aToken('catch_ingest')}`]],
  ...others.map((other): [string, string[]] => [
    'its token for something else',
    [`Bearer ${other}`],
  ]),
]

/** A body that is refused if it is read. */
const UNREADABLE = { headers: 'Content-Type: application/json\r\nContent-Length: 1\r\n', body: '{' }

/** The example of an operation of GATE, for this project. What names the project stands beside its token. */
function visitTo({ projectId }: Own, { operation }: Route): typeof UNREADABLE {
  const { headers, body } = exampleOf(operation)
  return { headers: headers.replace(/(X-Gate-Project: )\S+/i, `$1${projectId}`), body }
}

suite('every operation with a token', () => {
  const theServer = shareServer(GATE)

  test('every form that is not its one bearer token gets one answer, and every other one’s token gets one, before anything else is read', async () => {
    const server = await theServer()
    const [all, others] = await Promise.all([capabilities(server), capabilities(server)])
    for (const route of routes.filter(({ operation }) => needsBearer(operation))) {
      const { own, target } = ownOf(route, all)
      const { own: other } = ownOf(route, others)
      const rest = own.kind === 'gate_key' ? visitTo(own, route) : UNREADABLE
      const refusal = async (where: string, form: string, lines: string[]): Promise<string> => {
        const answer = await ask(server.url, `${route.method} ${where}`, {
          headers: lines.map((line) => `Authorization: ${line}\r\n`).join('') + rest.headers,
          body: rest.body,
        })
        const note = `${route.method} ${route.path}: ${form}`
        const is401 = answer.status === 401
        assertError(answer, is401 ? `401 ${JSON.parse(answer.body).error}` : '404 not found', note)
        assert.equal(answer.headers.get('www-authenticate'), is401 ? 'Bearer' : null, note)
        return answer.body
      }
      const malformed = new Set<string>()
      for (const [form, lines] of notTheToken(own))
        malformed.add(await refusal(target, form, lines))
      const strangers = new Set([await refusal(target, 'nobody', [`Bearer ${aToken(own.kind)}`])])
      // A project of GATE is named by a header.
      const { publicId } = own
      if (publicId !== undefined) {
        strangers.add(await refusal(target, 'another one', [`Bearer ${other.token}`]))
        const unknown = target.replace(publicId, 'x')
        strangers.add(await refusal(unknown, 'at another place', [`Bearer ${own.token}`]))
      }
      const note = `${route.method} ${route.path}`
      assert.deepEqual([malformed.size, strangers.size], [1, 1], note)
    }
    for (const { token, publicId } of [all['/api/catch/'], all['/api/pulse/']] as Own[]) {
      const path = `/api/${publicId?.split('_')[0]}/${publicId}`
      const answer = await ask(server.url, `GET ${path}`, {
        headers: `Authorization: bearer  ${token}\r\n`,
      })
      assert.equal(answer.status, 200, 'the scheme in any case, and any spaces')
    }
  })

  test('every body of an owner is refused whole for a member that nobody knows', async () => {
    const server = await theServer()
    const all = await capabilities(server)
    const withMembers = routes.filter(
      ({ operation, path }) =>
        needsBearer(operation) &&
        operation.requestBody?.content['application/json'] &&
        // What GATE forwards is the payer's, and its proofs are read by a codec of their own.
        !path.startsWith('/api/gate/'),
    )
    assert.ok(withMembers.length > 4)
    for (const route of withMembers) {
      const { own, target } = ownOf(route, all)
      const example = JSON.parse(exampleOf(route.operation).body)
      const [known, surprising] = await Promise.all(
        [example, { ...example, surprise: 1 }].map((body) =>
          fetch(server.url + target, {
            method: route.method,
            headers: {
              authorization: `Bearer ${own.token}`,
              'content-type': 'application/json',
            },
            body: JSON.stringify(body),
          }),
        ),
      )
      const note = `${route.method} ${route.path}`
      assert.equal(surprising?.status, 400, note)
      assert.notEqual(await surprising?.text(), await known?.text(), note)
    }
  })
})

/** They are asked for what exists alone, so that nobody fills the memory with ids that he invents. */
const LIMITED_IF_KNOWN = /^\/(?:api\/(?:payments|extensions)\/\{orderId\}|c\/)|\/extend$/

/** The path parameters of an operation, by their examples, or of what exists where that alone is limited. */
async function knownTo(server: TestServer) {
  const all = await capabilities(server)
  const { orderId } = await openOrder(server)
  return ({ path, operation }: Route): { params: Record<string, string>; token: string } => {
    const { parameters = [] } = operation
    const own = all[path.startsWith('/api/pulse/') ? '/api/pulse/' : '/api/catch/']
    const given = parameters.map(({ name, example }) => [name, String(example)])
    const known = LIMITED_IF_KNOWN.test(path) ? { orderId, publicId: own?.publicId ?? '' } : {}
    return { params: { ...Object.fromEntries(given), ...known }, token: own?.token ?? '' }
  }
}

test('every operation that is limited refuses alike: how long to wait, which limit it was, and for pages to read', async (t) => {
  const environment: Record<string, string> = { ...GATE }
  const server = await startServer(t, environment)
  const known = await knownTo(server)
  environment.MAYFLY_RATE_LIMITS = await jsonFile(t, ONCE)
  await server.restart()
  const call = createConformance(await openapi(server, '/openapi-all.json')).on(server)
  const limitedOnes = routes.filter(({ operation }) => '429' in operation.responses)
  assert.ok(limitedOnes.length > 60)
  for (const route of limitedOnes) {
    const { path, method, operation } = route
    const note = `${method} ${path}`
    const { params, token } = known(route)
    const body = bodyOf(operation.requestBody)
    const needsToken = operation.security.some((way) => 'bearer' in way)
    const given: Record<string, string> = {
      ...Object.fromEntries(headersOf(operation.parameters)),
      ...(needsToken ? { authorization: 'Bearer x' } : {}),
      ...(path.endsWith('/extend') ? { 'X-Owner-Token': token } : {}),
    }
    const replies: Reply[] = []
    for (let i = 0; i < 3; i++) {
      const headers = { ...given }
      if (given['Idempotency-Key']) headers['Idempotency-Key'] = crypto.randomUUID()
      const ask = { params, headers, ...(body === '' ? {} : { body }) }
      replies.push(await call(operation.operationId, null, ask))
    }
    const refused = replies.find(({ status }) => status === 429)
    assert.ok(refused, `${note} is never refused`)
    if (method !== 'HEAD') assert.deepEqual(refused.body, { error: 'rate limited' }, note)
    const told = (name: string): string => refused.headers.get(name) ?? ''
    const [, name, quota, seconds] =
      /^"(\w[\w.]*)";q=(\d+);w=(\d+)$/.exec(told('ratelimit-policy')) ?? []
    assert.ok(
      ALL_LIMITS.some((one) => one.name === name),
      `${note}: ${told('ratelimit-policy')}`,
    )
    assert.deepEqual([quota, seconds], ['1', '60'], note)
    assert.match(told('retry-after'), /^[1-9]\d?$/, note)
    assert.equal(told('ratelimit'), `"${name}";r=0;t=${told('retry-after')}`, note)
    const exposed = told('access-control-expose-headers').split(', ')
    if (!FOR_BROWSERS.test(path) || path.startsWith('/.well-known/')) continue
    for (const header of ['Retry-After', 'RateLimit', 'RateLimit-Policy'])
      assert.ok(exposed.includes(header), `${note} hides ${header}`)
  }
})
