import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEventParser } from '../../src/client/event-stream.ts'
import { type CatchEvent, createMayfly } from '../../src/client/index.ts'
import { anInbox } from '../support/catch.ts'
import { createRandom } from '../support/random.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { answersTo, openUnread, sendMany, sequenceOf } from './catch-stream.ts'

const KIB = 1024
const RETRY_MS = 1

test('4 readers that are cut off again and again each see 10 000 events once and in order', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server, 'long')
  const total = 10_000
  // Readers that a failure leaves behind would come back to the stopped server for ever.
  const over = new AbortController()
  t.after(() => over.abort())
  let cuts = 0
  const readers = Array.from({ length: 4 }, (_, place) => {
    const random = createRandom(place + 1)
    const opened = Promise.withResolvers<void>()
    const fetch = cutting((connection) => {
      cuts++
      // Where a stream begins is told with its first bytes; before that there is nothing to keep.
      return connection === 0 ? 100 : Math.floor(random.next() ** 3 * 1_500_000) + 1
    }, opened.resolve)
    const inboxOf = createMayfly({ baseUrl: server.url, fetch }).catch
    // Half of them name the beginning, and half begin with what comes once they are there.
    return {
      opened: opened.promise,
      ended: inOrder(
        inboxOf(inbox).stream({ signal: over.signal, ...(place % 2 === 0 ? { after: 0 } : {}) }),
      ),
    }
  })
  await Promise.all(readers.map(({ opened }) => opened))
  await sendMany(server, inbox, { count: total, body: (n) => JSON.stringify({ n, text: 'é€😀' }) })
  for (const { ended } of readers) {
    assert.deepEqual(await ended, { told: total, end: 'exhausted' })
  }
  assert.ok(cuts > 40, `${cuts} cuts`)
})

test('a reader that stops reading costs a bounded number of bytes, and nobody else anything', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server, 'long')
  const total = 400
  const body = 'x'.repeat(64 * KIB)
  const responses = answersTo(t, '/stream')
  const stalled = await openUnread(t, server, inbox)
  const [answer] = responses
  assert.ok(answer)

  let most = 0
  const told: number[] = []
  const reading = (async () => {
    for await (const { sequence } of server.mayfly.catch(inbox).stream({ after: 0 })) {
      told.push(sequence)
      most = Math.max(most, answer.writableLength)
      if (sequence === total) return
    }
  })()
  await sendMany(server, inbox, { count: total, body: () => body })
  await reading
  assert.deepEqual(
    told,
    Array.from({ length: total }, (_, i) => i + 1),
  )
  assert.equal(answer.writableNeedDrain, true, 'it did stop')
  assert.ok(most < 256 * KIB, `${most} bytes waited for it in this process`)
  const { bytesWritten } = answer.socket ?? {}
  assert.ok((bytesWritten ?? Number.POSITIVE_INFINITY) < (total * body.length) / 2)

  // It reads on, and has missed nothing.
  const parser = createEventParser()
  const late: number[] = []
  for await (const chunk of stalled) {
    for (const { data } of parser.push(chunk as Buffer)) late.push(sequenceOf(data))
    if (late.length === total) break
  }
  assert.deepEqual(late, told)
})

test('a reader that takes nothing gets no sign of life, which would keep its connection open', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const server = await startServer(t)
  const inbox = await anInbox(server, 'long')
  await sendMany(server, inbox, { count: 100, body: () => 'x'.repeat(64 * KIB) })
  const responses = answersTo(t, '/stream')
  await openUnread(t, server, inbox)
  const [answer] = responses
  assert.ok(answer)
  await until('nothing goes out', () => answer.writableNeedDrain)
  const waiting = answer.writableLength
  t.mock.timers.tick(15_000)
  assert.equal(answer.writableLength, waiting)
})

/** Every event is the next one, and whole. */
async function inOrder(
  events: AsyncGenerator<CatchEvent, string, undefined>,
): Promise<{ told: number; end: string }> {
  for (let told = 0; ; told++) {
    const next = await events.next()
    if (next.done) return { told, end: next.value }
    assert.equal(next.value.sequence, told + 1)
    assert.ok(next.value.body.endsWith('"text":"é€😀"}'))
  }
}

/**
 * A fetch whose n-th connection is lost after so many bytes. Each begins with the word by which a server tells
 * its readers how soon to come back, so that the hundreds of losses cost no waiting.
 */
function cutting(
  bytesOf: (connection: number) => number,
  onOpen: () => void,
): typeof globalThis.fetch {
  let connections = 0
  return async (input, init) => {
    const response = await fetch(input, init)
    onOpen()
    if (response.status !== 200 || !response.body) return response
    let left = bytesOf(connections++)
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      start(controller) {
        controller.enqueue(Buffer.from(`retry: ${RETRY_MS}\n\n`))
      },
      transform(chunk, controller) {
        controller.enqueue(chunk.subarray(0, left))
        left -= chunk.length
        if (left <= 0) controller.error(new TypeError('terminated'))
      },
    })
    return new Response(response.body.pipeThrough(cut), response)
  }
}
