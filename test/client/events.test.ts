import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { buffer } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import {
  type CatchCapability,
  type CatchClient,
  type CatchEvent,
  createMayfly,
  type EventFilter,
  eventBody,
  MayflyError,
  matchesFilter,
  toCurl,
  toHar,
  toJsonLines,
} from '../../src/client/index.ts'
import { simulatorWallet } from '../../src/client/wallets/simulator.ts'
import type { After } from '../support/folder.ts'
import { startServer } from '../support/server.ts'
import { serve } from '../support/serving.ts'

/** Requests that something has gone wrong with in one exporter or another. */
const REQUESTS: { path: string; init: RequestInit }[] = [
  { path: '', init: { method: 'GET' } },
  { path: '/a/b?x=1&y=%20[z]{1,2}', init: { method: 'HEAD' } },
  { path: '/it%27s?q=%22', init: { method: 'POST', body: `it's "$HOME" \`id\` \\ !! %s\nnext` } },
  { path: '', init: { method: 'POST', body: '@/etc/passwd' } },
  { path: '/hook', init: json({ action: 'opened', of: 'Straße ☂' }) },
  { path: '', init: { method: 'PUT', body: Buffer.from([0, 1, 2, 0xff, 0xfe, 10, 13, 0]) } },
  { path: '', init: { method: 'PATCH', body: 'tab\tand\r\nbreaks\0' } },
  { path: '', init: { method: 'POST', body: 'long '.repeat(10_000) } },
  { path: '', init: { method: 'DELETE', headers: { 'x-empty': '', 'x-quote': `a'b"c;d` } } },
  { path: '?authorized', init: json({ n: 7 }) },
  { path: '/a+b/c%20d?a=hello%20world&name=J%C3%BCrgen', init: { method: 'PUT' } },
  { path: '/a%20b/c?a=hello+world&email=a%40b.c&%C3', init: { method: 'PUT' } },
  { path: '', init: { method: 'POST', headers: { 'x-github-event': 'Push', 'x-a': 'u: b' } } },
]

test('the filter lets through what the service lists', async (t) => {
  const { inbox, events, send } = await anInbox(t)
  await send({ path: '?mine', init: json({ n: 8 }) }, true)
  const all = [...(await list(inbox)), ...events].filter(
    (event, i, list) => list.findIndex(({ id }) => id === event.id) === i,
  )
  const filters: EventFilter[] = [
    {},
    { access: 'public' },
    { access: 'authenticated' },
    { method: 'post' },
    { method: 'POST', contentType: 'APPLICATION/json; charset=x' },
    { contentType: 'text/plain' },
    { q: '' },
    { q: 'STRASSE' },
    { q: 'straße' },
    { q: '/HOOK' },
    { q: 'Authorized' },
    { q: 'json' },
    { q: '\0' },
    { q: 'opened', method: 'PUT' },
    { q: 'X-GITHUB-EVENT' },
    { q: 'push' },
    { q: 'x-github-event: push' },
    { q: 'x-github-event:push' },
    { q: ' push' },
    { q: 'U: B' },
    { q: 'push\nx' },
    { q: 'hello world' },
    { q: 'jürgen' },
    { q: 'a@b.c' },
    { q: 'hello%20world' },
    { q: 'a b/c' },
  ]
  for (const filter of filters) {
    assert.deepEqual(
      all.filter((event) => matchesFilter(event, filter)).map(({ sequence }) => sequence),
      (await list(inbox, filter)).map(({ sequence }) => sequence),
      JSON.stringify(filter),
    )
  }
})

test('one event and its raw body are read by id', async (t) => {
  const { inbox, events } = await anInbox(t)
  for (const event of events) {
    assert.deepEqual(await inbox.event(event.id), event)
    const body = Buffer.from(await inbox.body(event.id))
    assert.deepEqual(body, Buffer.from(eventBody(event)))
    assert.equal(body.length, event.bodyBytes)
  }
  const [event] = events
  await inbox.deleteEvent(event?.id ?? '')
  await assert.rejects(inbox.event(event?.id ?? ''), { phrase: 'not found', status: 404 })
})

test('the next event that a filter means is waited for', async (t) => {
  const { inbox, send } = await anInbox(t)
  const { latestSequence: after } = await inbox.page({ limit: 1 })
  const coming = inbox.next({ after, filter: { method: 'PUT' }, timeoutMs: 60_000 })
  await send({ path: '/no', init: { method: 'POST' } })
  await send({ path: '/yes', init: { method: 'PUT' } })
  assert.equal((await coming).path, '/yes')
  const compressed = { 'content-encoding': 'gzip' }
  await send({ path: '/zip', init: { method: 'POST', headers: compressed, body: gzipSync('pin') } })
  const filter = { q: 'PIN' }
  assert.equal((await inbox.next({ after, filter })).path, '/zip')
  assert.equal((await inbox.waitFor(() => true, { after, filter })).path, '/zip')
  const { latestSequence } = await inbox.page({ limit: 1 })
  await assert.rejects(inbox.next({ after: latestSequence, timeoutMs: 10 }), {
    phrase: 'no event in time',
  })
  const reason = new Error('enough')
  await assert.rejects(inbox.next({ signal: AbortSignal.abort(reason) }), reason)
  const none = inbox.next({ after, filter: { q: 'never' } })
  // Awaited from now on: it may be refused before the answer to what ends it is there.
  const refused = assert.rejects(none, (error) => error instanceof MayflyError)
  await inbox.destroy()
  await refused
})

test('a stream with a filter passes over the other events', async (t) => {
  const { inbox } = await anInbox(t)
  const seen: number[] = []
  for await (const { sequence } of inbox.stream({ after: 0, filter: { method: 'POST' } })) {
    seen.push(sequence)
    if (seen.length === 5) break
  }
  assert.deepEqual(seen, [3, 4, 5, 8, 10])
})

test('curl, run by a shell, sends each event again: method, path, headers and body', async (t) => {
  const { events } = await anInbox(t)
  const echo = await startEcho(t)
  for (const event of events) {
    const command = toCurl(event, { url: `${echo.url}/it's/` })
    await promisify(execFile)('sh', ['-euc', `${command} --silent --show-error --max-time 20`])
    const seen = echo.seen.pop()
    assert.equal(seen?.method, event.method)
    assert.equal(seen?.url, `/it's/${event.path.slice(1)}${event.query && `?${event.query}`}`)
    assert.deepEqual(seen?.body, Buffer.from(eventBody(event)), command)
    assert.deepEqual(withoutOwn(seen?.headers ?? []), withoutOwn(event.headers), command)
  }
})

test('no event can get out of its quotes', async (t) => {
  const [event] = (await anInbox(t)).events
  assert.ok(event)
  const echo = await startEcho(t)
  const evil = `'; touch /tmp/mayfly-was-here; '`
  const forged: CatchEvent = {
    ...event,
    method: 'POST',
    path: `/${encodeURI(evil)}`,
    query: evil.replaceAll(' ', '+'),
    headers: [
      { name: 'x-evil', value: evil },
      { name: 'x-two', value: 'a\r\nx-three: b' },
    ],
    body: evil,
    bodyBytes: evil.length,
    bodyEncoding: 'utf8',
  }
  await promisify(execFile)('sh', ['-euc', `${toCurl(forged, { url: echo.url })} --silent`])
  const seen = echo.seen.pop()
  assert.equal(String(seen?.body), evil)
  assert.deepEqual(withoutOwn(seen?.headers ?? []), [{ name: 'x-evil', value: evil.trim() }])
})

test('a HAR file has the requests as they came', async (t) => {
  const { capability, events, url } = await anInbox(t)
  const { log } = JSON.parse(toHar(events, { url: `${url}/c/${capability.publicId}` }))
  assert.equal(log.version, '1.2')
  assert.equal(log.entries.length, events.length)
  for (const [i, { request, startedDateTime }] of log.entries.entries()) {
    const event = events[i]
    assert.ok(event)
    assert.equal(startedDateTime, event.receivedAt)
    assert.equal(request.method, event.method)
    assert.ok(request.url.startsWith(`${url}/c/${capability.publicId}${event.path}`))
    assert.deepEqual(request.headers, event.headers)
    assert.equal(request.bodySize, event.bodyBytes)
    if (event.bodyBytes === 0) assert.equal(request.postData, undefined)
    else {
      const encoding = request.postData._encoding ?? 'utf8'
      assert.deepEqual(Buffer.from(request.postData.text, encoding), Buffer.from(eventBody(event)))
    }
  }
  const zed = log.entries.find((entry: { request: { url: string } }) =>
    entry.request.url.includes('/a/b?'),
  )
  assert.deepEqual(zed.request.queryString, [
    { name: 'x', value: '1' },
    { name: 'y', value: ' [z]{1,2}' },
  ])
})

test('JSON lines are the events, one a line', async (t) => {
  const { events } = await anInbox(t)
  const lines = toJsonLines(events).split('\n')
  assert.equal(lines.pop(), '')
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)),
    events,
  )
})

type Inbox = {
  url: string
  capability: CatchCapability
  inbox: CatchClient
  /** Newest first. */
  events: CatchEvent[]
  send(request: (typeof REQUESTS)[number], withToken?: boolean): Promise<void>
}

/** An inbox that all of the requests have come to. */
async function anInbox(t: TestContext): Promise<Inbox> {
  const { url } = await startServer(t)
  const mayfly = createMayfly({ baseUrl: url, wallet: simulatorWallet({ baseUrl: url }) })
  const capability = await mayfly.buyCatch({ planId: 'spark' })
  const inbox = mayfly.catch(capability)
  async function send({ path, init }: (typeof REQUESTS)[number], withToken = false) {
    const headers = new Headers(init.headers)
    if (withToken) headers.set('authorization', `Bearer ${capability.ingestToken}`)
    const { status } = await fetch(`${url}/c/${capability.publicId}${path}`, { ...init, headers })
    assert.equal(status, 204)
  }
  for (const request of REQUESTS) await send(request)
  return { url, capability, inbox, events: await list(inbox), send }
}

async function list(inbox: CatchClient, filter: EventFilter = {}): Promise<CatchEvent[]> {
  return Array.fromAsync(inbox.events({ ...filter, limit: 50 }))
}

function json(value: unknown): RequestInit {
  return {
    method: 'POST',
    body: JSON.stringify(value),
    headers: { 'content-type': 'application/json; charset=utf-8' },
  }
}

type Header = { name: string; value: string }
type Seen = { method: string; url: string; headers: Header[]; body: Buffer }

/** A server on loopback that keeps what it is sent. */
async function startEcho(t: After): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = []
  const url = await serve(t, async (request, response) => {
    const body = await buffer(request)
    const headers: Header[] = []
    for (let i = 0; i < request.rawHeaders.length; i += 2) {
      headers.push({ name: request.rawHeaders[i] ?? '', value: request.rawHeaders[i + 1] ?? '' })
    }
    const { method = '', url = '' } = request
    seen.push({ method, url, headers, body })
    response.writeHead(204).end()
  })
  return { url, seen }
}

/** What a connection and a body's length decide is each client's own. */
function withoutOwn(headers: Header[]): Header[] {
  const own = new Set(['host', 'connection', 'content-length', 'transfer-encoding', 'expect'])
  return headers.filter(({ name }) => !own.has(name.toLowerCase()))
}
