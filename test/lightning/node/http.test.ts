/** How a node is asked over HTTP: what is sent, and how long and how much is waited for. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { createSecureServer } from 'node:http2'
import { createServer as createTcpServer, Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import {
  createNodeHttp,
  MAX_BODY_BYTES,
  type NodeRequest,
} from '../../../src/lightning/node/http.ts'
import { serve } from '../../support/serving.ts'
import { CERTIFICATE, CERTIFICATE_KEY } from '../../support/stand-ins/certificate.ts'
import { startStandIn } from '../../support/stand-ins/http-server.ts'
import { until } from '../../support/until.ts'

const ASK: NodeRequest = { what: 'asking', method: 'GET', path: '/info', timeoutMs: 60_000 }

/** A client, and a server that answers like this. */
async function aWorld(
  t: TestContext,
  answer: (response: ServerResponse) => void = (response) => void response.end('{}'),
) {
  const server = await startStandIn((_, response) => answer(response))
  const http = createNodeHttp({
    node: 'A node',
    baseUrl: server.baseUrl,
    headers: { authorization: 'key' },
    certificate: undefined,
    connectTimeoutMs: 5_000,
    answerOf: ({ text }) => (text === 'no' ? { code: 7, message: text } : null),
  })
  t.after(async () => {
    await http.close()
    await server.close()
  })
  return { http, asked: server.requests, leave: server.close }
}

async function openBody(
  http: ReturnType<typeof createNodeHttp>,
  signal = new AbortController().signal,
) {
  return http.open({ what: 'following', method: 'GET', path: '/events', signal })
}

test('a node is sent JSON, a form, or nothing, with the headers of its client', async (t) => {
  const { http, asked } = await aWorld(t, (response) => {
    response.statusCode = 418
    response.end('tea für zwei')
  })
  const requests: [
    Partial<NodeRequest>,
    { line: string; body: string },
    type: string | undefined,
  ][] = [
    [{}, { line: 'GET /info', body: '' }, undefined],
    [
      { method: 'POST', path: '/make?a=1', json: { amount: 21 } },
      { line: 'POST /make?a=1', body: '{"amount":21}' },
      'application/json',
    ],
    [{ method: 'POST', json: null }, { line: 'POST /info', body: 'null' }, 'application/json'],
    [
      { method: 'POST', form: { memo: 'für & wider', amount: '21' } },
      { line: 'POST /info', body: 'memo=f%C3%BCr+%26+wider&amount=21' },
      'application/x-www-form-urlencoded',
    ],
    [{ method: 'POST' }, { line: 'POST /info', body: '' }, undefined],
  ]
  for (const [changes, expected, type] of requests) {
    const answer = await http.exchange({ ...ASK, ...changes })
    assert.deepEqual(answer, { status: 418, text: 'tea für zwei' })
    const { headers, ...sent } = asked.at(-1) ?? { headers: {} }
    assert.deepEqual(sent, expected)
    assert.equal(headers['content-type'], type)
    assert.equal(headers.authorization, 'key')
  }
  await openBody(http)
  assert.equal(asked.at(-1)?.line, 'GET /events')
  assert.equal(asked.at(-1)?.headers.authorization, 'key')
})

test('a call of a node is answered with an object, with its refusal, or by somebody else', async (t) => {
  let said: [status: number, text: string] = [200, '']
  const { http } = await aWorld(t, (response) => {
    response.statusCode = said[0]
    response.end(said[1])
  })
  for (const status of [200, 201]) {
    said = [status, '{"a":1}']
    assert.deepEqual(await http.call(ASK), { a: 1 })
  }
  for (const [status, text, reason, message] of [
    [200, '[]', 'malformed', 'an answer is not an object'],
    [200, '<html>', 'malformed', 'an answer is not JSON'],
    [202, '{"a":1}', 'malformed', 'asking got HTTP 202 that is not of A node'],
    [502, '<html>', 'malformed', 'asking got HTTP 502 that is not of A node'],
    [404, 'no', 'refused', 'asking was refused: no'],
  ] as const) {
    said = [status, text]
    const answer = reason === 'refused' ? { code: 7, message: text } : undefined
    await assert.rejects(http.call(ASK), { reason, message: `A node: ${message}`, answer })
  }
})

test('an answer of a node may have 4 MiB, and one byte more is refused', async (t) => {
  let bytes = MAX_BODY_BYTES
  const { http } = await aWorld(t, (response) => void response.end('x'.repeat(bytes)))
  assert.equal((await http.exchange(ASK)).text.length, MAX_BODY_BYTES)
  assert.equal((await (await openBody(http)).text()).length, MAX_BODY_BYTES)
  bytes += 1
  const tooLarge = { reason: 'malformed', message: 'A node: an answer is too large' }
  await assert.rejects(http.exchange(ASK), tooLarge)
  await assert.rejects((await openBody(http)).text(), tooLarge)
})

test('a node that does not answer in time, or does not end its answer, is told from one that is not there', async (t) => {
  const never = () => {}
  const drops = (response: ServerResponse) => {
    const timer = setInterval(() => response.write(' '), 5)
    response.on('close', () => clearInterval(timer))
  }
  for (const answer of [never, drops]) {
    const { http, leave } = await aWorld(t, answer)
    await assert.rejects(http.exchange({ ...ASK, timeoutMs: 50 }), {
      name: 'NodeError',
      reason: 'timeout',
      message: 'A node: asking took too long',
    })
    await leave()
    await assert.rejects(http.exchange(ASK), {
      name: 'NodeError',
      reason: 'unreachable',
      message: 'A node: asking failed (connection refused)',
    })
  }
})

test('a call to a node ends when its caller stops it, before its time and while it waits for a connection', async (t) => {
  const { http, asked } = await aWorld(t, () => {})
  const stop = new AbortController()
  const { signal } = stop
  const calls = Array.from({ length: 33 }, () => http.exchange({ ...ASK, signal }))
  const ended = Promise.allSettled(calls)
  await until('all connections', () => asked.length === 32)
  stop.abort()
  for (const call of await ended) {
    assert.equal(call.status, 'rejected')
    assert.equal(call.reason.message, 'A node: asking failed (AbortError)')
  }
  // One request at a time on each connection, and no more than 32 of them.
  assert.equal(asked.length, 32)
  await assert.rejects(http.exchange({ ...ASK, signal }), { message: /AbortError/ })
})

test('a call to a node ends in its time while the node takes no connection', async (t) => {
  // Its TLS is never answered.
  const silent = await serve(t, createTcpServer())
  const http = createNodeHttp({
    node: 'A node',
    baseUrl: silent.replace('http:', 'https:'),
    headers: {},
    certificate: undefined,
    connectTimeoutMs: 1_500,
    answerOf: () => null,
  })
  t.after(http.close)
  await assert.rejects(http.exchange({ ...ASK, timeoutMs: 20 }), { reason: 'timeout' })
})

test('an endless answer is read as it comes, and ends when its caller stops it', async (t) => {
  let response: ServerResponse | undefined
  const { http } = await aWorld(t, (opened) => {
    response = opened
    opened.statusCode = 203
    opened.write('first')
  })
  const stop = new AbortController()
  const { status, body } = await openBody(http, stop.signal)
  assert.equal(status, 203)
  const chunks = body[Symbol.asyncIterator]()
  assert.equal(String((await chunks.next()).value), 'first')
  response?.write('second')
  assert.equal(String((await chunks.next()).value), 'second')
  const next = assert.rejects(chunks.next(), { name: 'AbortError' })
  stop.abort()
  await next
})

test('an endless answer that never begins ends when its caller stops it', async (t) => {
  const { http, asked } = await aWorld(t, () => {})
  const stop = new AbortController()
  const opened = assert.rejects(openBody(http, stop.signal), { name: 'AbortError' })
  await until('the request', () => asked.length === 1)
  stop.abort()
  await opened
})

test('the kernel asks a silent connection to a node for a sign of life after 30 seconds', async (t) => {
  const { http } = await aWorld(t)
  const setKeepAlive = t.mock.method(Socket.prototype, 'setKeepAlive')
  await http.exchange(ASK)
  assert.deepEqual(
    setKeepAlive.mock.calls.map((call) => call.arguments),
    [[true, 30_000]],
  )
})

test('a node is spoken to in HTTP/1.1, over TLS that its own certificate vouches for', async (t) => {
  const versions: string[] = []
  const server = createSecureServer(
    { cert: CERTIFICATE, key: CERTIFICATE_KEY, allowHTTP1: true },
    (request, response) => {
      versions.push(request.httpVersion)
      response.end('{}')
    },
  )
  const options = {
    node: 'A node',
    baseUrl: (await serve(t, server)).replace('http:', 'https:'),
    headers: {},
    connectTimeoutMs: 5_000,
    answerOf: () => null,
  }
  const own = createNodeHttp({ ...options, certificate: CERTIFICATE })
  const others = createNodeHttp({ ...options, certificate: undefined })
  t.after(async () => {
    await own.close()
    await others.close()
  })
  assert.deepEqual(await own.exchange(ASK), { status: 200, text: '{}' })
  await assert.rejects(others.exchange(ASK), { reason: 'certificate' })
  assert.deepEqual(versions, ['1.1'])
})
