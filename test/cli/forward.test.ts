import assert from 'node:assert/strict'
import { createServer as createTcpServer } from 'node:net'
import { test } from 'node:test'
import { forward, retryPauseMs } from '../../src/cli/catch/forward.ts'
import type { CatchEvent } from '../../src/client/index.ts'
import type { After } from '../support/folder.ts'
import { aReceiver } from '../support/receiver.ts'
import { serve } from '../support/serving.ts'

/** Longer than a test may take. */
const FOR_EVER_MS = 3_600_000

test('an alert stays marked when it is forwarded, even if its sender calls the mark hop-by-hop', async (t) => {
  const headers = {
    'mayfly-alert': 'pulse.late',
    'x-other': '1',
    connection: 'mayfly-alert, x-other',
  }
  const receiver = await aReceiver(t)
  const event = anEvent(Object.entries(headers).map(([name, value]) => ({ name, value })))
  const answer = await forward(event, { to: new URL(receiver.url), onSent: () => undefined })
  assert.equal(answer.status, 204)
  const [got] = receiver.received
  assert.equal(got?.headers['mayfly-alert'], 'pulse.late')
  assert.equal(got?.headers['x-other'], undefined)
})

test('a receiver that trickles its answer for ever holds up nothing: its status counts', async (t) => {
  const to = await serve(t, (_request, response) => {
    response.writeHead(200)
    trickle(t, () => void response.write('x'))
  })
  const answer = await forward(anEvent(), {
    to: new URL(to),
    onSent: () => undefined,
    answerMs: 200,
  })
  assert.equal(answer.status, 200)
  assert.match(answer.answer ?? '', /^x+…?$/)
})

test('a receiver that trickles the head of its answer for ever has not answered in time', async (t) => {
  const server = createTcpServer((socket) => {
    socket.on('error', () => undefined)
    socket.write('HTTP/1.1 200 OK\r\nx-slow: ')
    trickle(t, () => void socket.write('x'))
  })
  const to = await serve(t, server)
  const answer = await forward(anEvent(), {
    to: new URL(to),
    onSent: () => undefined,
    answerMs: 200,
  })
  assert.deepEqual([answer.status, answer.error], [null, 'no answer came in time'])
})

test('a receiver whose answer never ends is cut off at a mebibyte', async (t) => {
  const to = await serve(t, (_request, response) => {
    response.writeHead(200)
    const more = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(65_536, 'x')));
      response.once('drain', more)
    }
    more()
  })
  const answer = await forward(anEvent(), {
    to: new URL(to),
    onSent: () => undefined,
    answerMs: FOR_EVER_MS,
  })
  assert.equal(answer.status, 200)
})

test('what a receiver says is shown up to 200 bytes of its first line, and no character is halved', async (t) => {
  const cases = [
    ['no such hook', 'no such hook'],
    ['\r\n  no such hook \r\n<html>', 'no such hook…'],
    ['x'.repeat(200), 'x'.repeat(200)],
    ['x'.repeat(201), `${'x'.repeat(200)}…`],
    [`${'x'.repeat(199)}€ and more`, `${'x'.repeat(199)}…`],
    [`${'x'.repeat(197)}€ and more`, `${'x'.repeat(197)}€…`],
    ['y'.repeat(100_000), `${'y'.repeat(200)}…`],
    ['', undefined],
    [' \r\n ', undefined],
  ]
  for (const [says, shown] of cases) {
    const to = await serve(t, (_request, response) => response.writeHead(500).end(says))
    const answer = await forward(anEvent(), { to: new URL(to), onSent: () => undefined })
    assert.equal(answer.answer, shown)
  }
})

test('the pauses between tries of a failed webhook double up to a minute, and are up to half shorter by chance', () => {
  const pauses = (chance: number): number[] =>
    [0, 1, 2, 5, 6, 19].map((tries) => retryPauseMs(tries, chance))
  assert.deepEqual(pauses(0), [1000, 2000, 4000, 32_000, 60_000, 60_000])
  assert.deepEqual(pauses(1), [500, 1000, 2000, 16_000, 30_000, 30_000])
})

function anEvent(headers: CatchEvent['headers'] = []): CatchEvent {
  return {
    id: 'x',
    sequence: 1,
    receivedAt: '',
    access: 'public',
    method: 'POST',
    path: '',
    query: '',
    contentType: null,
    body: '{}',
    bodyEncoding: 'utf8',
    bodyBytes: 2,
    bodySha256: '',
    sourceIp: '',
    ipLocation: null,
    headers,
  }
}

function trickle(t: After, write: () => void): void {
  const timer = setInterval(write, 20)
  t.after(() => clearInterval(timer))
}
