/** What the SDK makes of a server that is none of ours: one error, and nothing believed. */

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { type TestContext, test } from 'node:test'
import { createMayfly, formatWhisperCode, type Mayfly } from '../../src/client/index.ts'
import { newId } from '../../src/lib/ids.ts'
import { serve } from '../support/serving.ts'
import { aToken } from '../support/tokens.ts'

const STRANGERS: Record<string, RequestListener> = {
  'a page': (_, response) => {
    response.setHeader('content-type', 'text/html').end('<h1>Log in</h1>')
  },
  'another JSON': (_, response) => {
    response.setHeader('content-type', 'application/json').end('{"hello":1}')
  },
  null: (_, response) => void response.end('null'),
  'no words': (_, response) => void response.end(),
  'a redirect': (request, response) => {
    response.writeHead(302, { location: `${request.url}/elsewhere` }).end()
  },
  'an error of its own': (_, response) => void response.writeHead(404).end('{"message":"no"}'),
}

for (const [name, listener] of Object.entries(STRANGERS)) {
  test(`${name} in place of the service makes every call fail with "unexpected answer"`, async (t) => {
    const { calls } = await strangerOf(t, listener)
    for (const [call, ask] of Object.entries(calls)) {
      await assert.rejects(ask, { name: 'MayflyError', phrase: 'unexpected answer' }, call)
    }
  })
}

test('no call asks a cache, where Firefox would let one tab wait for the stream of another', async (t) => {
  const asked: unknown[] = []
  const { calls } = await strangerOf(t, ({ headers }, response) => {
    asked.push(headers['cache-control'])
    response.writeHead(404).end()
  })
  const all = Object.values(calls)
  for (const ask of all) await assert.rejects(ask)
  assert.deepEqual(new Set(asked), new Set(['no-cache']))
  assert.ok(asked.length >= all.length)
})

test('an error says which part of the request is wrong and what it must be, in a short line or not at all', async (t) => {
  const told = { error: 'invalid settings', field: 'graceSeconds', expected: '60 to 604800' }
  const long = 'x'.repeat(201)
  const fault = { field: 'graceSeconds', expected: '60 to 604800' }
  for (const [body, expected, message] of [
    [told, fault, 'invalid settings (HTTP 400; graceSeconds: 60 to 604800)'],
    [
      { ...told, field: undefined },
      { ...fault, field: null },
      'invalid settings (HTTP 400; 60 to 604800)',
    ],
    [
      { ...told, expected: long },
      { ...fault, expected: null },
      'invalid settings (HTTP 400; graceSeconds)',
    ],
    [
      { ...told, field: 'a\u001b[2J', expected: 7 },
      { field: null, expected: null },
      'invalid settings (HTTP 400)',
    ],
  ] as const) {
    const { calls } = await strangerOf(t, (_, response) => {
      response.writeHead(400).end(JSON.stringify(body))
    })
    await assert.rejects(calls.update, {
      phrase: 'invalid settings',
      status: 400,
      ...expected,
      message,
    })
  }
})

test('an answer without an end is given up, also where no length is announced', async (t) => {
  const chunk = randomBytes(1024 * 1024)
  let sent = 0
  const { calls } = await strangerOf(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'application/octet-stream' })
    const more = (): void => {
      if (response.destroyed) return
      sent++
      response.write(chunk, more)
    }
    more()
  })
  await assert.rejects(calls.fetchWhisper, { phrase: 'unexpected answer' })
  assert.ok(sent < 128, `${sent} MiB were sent`)
})

for (const [name, { list, nextOf }] of Object.entries({
  'whose next one is the same': { list: [{}], nextOf: (asked: number) => Math.max(asked, 7) },
  'whose next one came before': { list: [{}], nextOf: (asked: number) => (asked === 7 ? 6 : 7) },
  'that are empty': { list: [], nextOf: (asked: number) => asked + 1 },
})) {
  test(`pages ${name} end with "unexpected answer", and not never`, async (t) => {
    let pages = 0
    const baseUrl = await serve(t, ({ url }, response) => {
      if (++pages > 10) return void response.destroy()
      const asked = Number(new URL(url ?? '', 'http://x').searchParams.get('cursor'))
      const page = { events: list, entries: list, latestSequence: 9, uptime: {} }
      response.end(JSON.stringify({ ...page, nextCursor: nextOf(asked) }))
    })
    const { inbox, monitor } = clientsOf(createMayfly({ baseUrl }))
    for (const all of [() => inbox.events(), () => monitor.historyEntries()]) {
      pages = 0
      await assert.rejects(() => Array.fromAsync<unknown>(all()), { phrase: 'unexpected answer' })
      assert.ok(pages <= 3, `${pages} pages`)
    }
  })
}

async function strangerOf(t: TestContext, listener: RequestListener) {
  const baseUrl = await serve(t, listener)
  return { calls: callsOf(createMayfly({ baseUrl })) }
}

const clientsOf = (mayfly: Mayfly) => ({
  inbox: mayfly.catch({ publicId: newId('catch'), ownerToken: 'x' }),
  monitor: mayfly.pulse({ publicId: newId('pulse'), ownerToken: 'x', pingToken: 'x' }),
})

function callsOf(mayfly: Mayfly) {
  const { inbox, monitor } = clientsOf(mayfly)
  const code = formatWhisperCode({
    publicId: newId('whisper'),
    readToken: aToken('whisper_read'),
    key: randomBytes(32),
    hasPassword: false,
  })
  return {
    catalog: () => mayfly.catalog(),
    status: () => inbox.status(),
    page: () => inbox.page(),
    events: () => inbox.events().next(),
    event: () => inbox.event('x'),
    body: () => inbox.body('x'),
    stream: () => inbox.stream().next(),
    deleteEvent: () => inbox.deleteEvent('x'),
    destroy: () => inbox.destroy(),
    ping: () => monitor.ping(),
    pulseStatus: () => monitor.status(),
    update: () => monitor.update({ name: 'x' }),
    pulseStream: () => monitor.stream().next(),
    pulseDestroy: () => monitor.destroy(),
    pulsePublicStatus: () => mayfly.pulsePublicStatus('x'),
    readWhisper: () => mayfly.readWhisper(code),
    fetchWhisper: () => mayfly.fetchWhisper(code),
  }
}
