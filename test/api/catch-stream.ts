/** The streams of an inbox, on the side of the reader and of the server. */
import assert from 'node:assert/strict'
import { channel } from 'node:diagnostics_channel'
import { get, type IncomingMessage, type ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'
import { Pool } from 'undici'
import { createEventParser, type StreamEvent } from '../../src/client/event-stream.ts'
import type { CatchCapability, CatchEvent } from '../../src/client/index.ts'
import type { TestServer } from '../support/server.ts'

const SENDERS = 64

/** Opens a stream of an inbox, which ends with the test at the latest. */
export async function listen(
  t: TestContext,
  server: TestServer,
  { publicId, ownerToken, lastEventId }: CatchCapability & { lastEventId?: string },
) {
  const leaving = new AbortController()
  t.after(() => leaving.abort())
  const response = await fetch(`${server.url}/api/catch/${publicId}/stream`, {
    signal: leaving.signal,
    headers: {
      authorization: `Bearer ${ownerToken}`,
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    },
  })
  const parser = createEventParser()
  const reader = response.body?.getReader()
  const waiting: StreamEvent[] = []
  let text = ''
  return {
    status: response.status,
    headers: response.headers,
    /** The next event, or null at the end of the stream. */
    async next(): Promise<StreamEvent | null> {
      for (;;) {
        const event = waiting.shift()
        if (event) return event
        const read = await reader?.read()
        if (!read || read.done) return null
        text += Buffer.from(read.value).toString()
        waiting.push(...parser.push(read.value))
      }
    },
    /** The text that has arrived so far. */
    text: () => text,
    leave: () => leaving.abort(),
  }
}

/** Opens a stream from the first event. Nothing is read until the test iterates over it. */
export async function openUnread(
  t: TestContext,
  server: TestServer,
  { publicId, ownerToken }: CatchCapability,
): Promise<IncomingMessage> {
  const opened = Promise.withResolvers<IncomingMessage>()
  const request = get(`${server.url}/api/catch/${publicId}/stream`, {
    agent: false,
    headers: { authorization: `Bearer ${ownerToken}`, 'last-event-id': '0' },
  })
  request.on('response', opened.resolve)
  request.on('error', opened.reject)
  t.after(() => request.destroy())
  const response = await opened.promise
  response.on('error', () => {})
  return response
}

/** The server's responses to all later requests whose path has this suffix. */
export function answersTo(t: TestContext, suffix: string): ServerResponse[] {
  const responses: ServerResponse[] = []
  const started = channel('http.server.request.start')
  const onStart = (message: unknown): void => {
    const { request, response } = message as { request: IncomingMessage; response: ServerResponse }
    if (request.url?.endsWith(suffix)) responses.push(response)
  }
  started.subscribe(onStart)
  t.after(() => started.unsubscribe(onStart))
  return responses
}

/** All events of a stream, and how it ends. */
export async function followed(
  events: AsyncGenerator<CatchEvent, string, undefined>,
): Promise<{ events: CatchEvent[]; end: string }> {
  const told: CatchEvent[] = []
  for (;;) {
    const next = await events.next()
    if (next.done) return { events: told, end: next.value }
    told.push(next.value)
  }
}

/** Sends the bodies 1 to `count`, many at a time, and asserts that each is stored. */
export async function sendMany(
  { url }: TestServer,
  { publicId }: CatchCapability,
  { count, body: bodyOf }: { count: number; body: (n: number) => string },
): Promise<void> {
  const pool = new Pool(url, { connections: SENDERS })
  let sent = 0
  await Promise.all(
    Array.from({ length: SENDERS }, async () => {
      while (sent < count) {
        const { statusCode, body } = await pool.request({
          method: 'POST',
          path: `/c/${publicId}`,
          body: bodyOf(++sent),
        })
        await body.dump()
        assert.equal(statusCode, 204)
      }
    }),
  )
  await pool.close()
}

/** The sequence in the data of an event of a stream. */
export function sequenceOf(data: string | undefined): number {
  return (JSON.parse(data ?? 'null') as CatchEvent | null)?.sequence ?? Number.NaN
}
