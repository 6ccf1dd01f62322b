/** What a page and a stream make of an inbox that ends, or of a search that is refused, while they read. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventStore } from '../../src/catch/event-store.ts'
import { createReading } from '../../src/catch/reading.ts'
import type { InboxRow } from '../../src/catch/store.ts'
import { rateLimited } from '../../src/http/limits.ts'
import type { Reservation } from '../../src/http/memory.ts'
import type { EventStream, StreamEvent } from '../../src/http/streams.ts'
import { createScheduler } from '../../src/http/turns.ts'

const MIB = 1024 * 1024
const gone = new AbortController().signal

test('of an inbox that ends while a page of it is sent, no further part is made', async () => {
  const destroyed = { end: () => null }
  const expired = { end: (inbox: InboxRow) => ({ ...inbox, expires_at: 5 }) }
  for (const { end } of [destroyed, expired]) {
    const { reading, inbox, change } = aReading(3)
    const page = reading.page(inbox, {}, { reservation: MEMORY, gone })
    const first = await page.next()
    assert.equal(first.done, false)
    assert.match(first.value.toString(), /^\{"events":\["3"$/)
    change(end(inbox))
    await assert.rejects(page.next(), { phrase: 'unauthorized' })
  }
})

test('a page in several parts is whole', async () => {
  const { reading, inbox } = aReading(3)
  const parts: string[] = []
  const page = reading.page(inbox, { limit: 2 }, { reservation: MEMORY, gone })
  for (let part = await page.next(); ; part = await page.next()) {
    parts.push(part.value.toString())
    if (part.done) break
  }
  assert.deepEqual(parts, ['{"events":["3"', ',"2"],"nextCursor":2,"latestSequence":3}'])
})

test('a stream whose search is refused does not end before it has looked at what is there', async () => {
  const { reading, inbox, refuse } = aReading(2)
  const sent: StreamEvent[] = []
  let waits = 0
  refuse(true)
  const stream = {
    ...MEMORY,
    isOpen: () => true,
    waitTurn: async () => undefined,
    send: async (event: StreamEvent) => sent.push(event) > 0,
    async sendAll(events: StreamEvent[]) {
      sent.push(...events)
      return true
    },
    async wait() {
      waits++
      refuse(false)
    },
  } as unknown as EventStream
  // It is exhausted, so the stream ends as soon as it has sent all.
  await reading.follow(inbox, { q: 'x' }, { from: 0, stream, gone })
  assert.equal(waits, 1)
  assert.deepEqual(
    sent.map(({ event, id }) => [event, id]),
    [
      ['capture', '1'],
      ['capture', '2'],
      ['end', undefined],
    ],
  )
})

/** An inbox with so many events of a mebibyte, each of which has the text of every search. */
function aReading(events: number) {
  let current: InboxRow | null = {
    public_id: 'catch_x',
    owner_token_hash: new Uint8Array(),
    number: 1,
    expires_at: 100,
    accepted_request_count: events,
    request_limit: events,
    destroyed_at: null,
    suspended_at: null,
  } as InboxRow
  let isRefused = false
  const all = Array.from({ length: events }, (_, i) => ({ sequence: i + 1, size: MIB, matches: 1 }))
  const beyond = ({ order, from }: { order: string; from: number }) =>
    order === 'newest'
      ? all.filter(({ sequence }) => sequence < from).reverse()
      : all.filter(({ sequence }) => sequence > from)
  const store: EventStore = {
    first: async (_inbox, filter, { limit }) =>
      beyond(filter)
        .slice(0, limit)
        .map((event) => ({ ...event, body: null }) as never),
    window: async (_inbox, filter, limit) => beyond(filter).slice(0, limit),
    searched: async (_inbox, { sequences }) =>
      sequences.map((sequence) => ({ sequence, has_text: 1 })),
    json: async (_inbox, { sequences }) =>
      sequences.map((sequence) => ({ sequence, size: MIB, json: Buffer.from(`"${sequence}"`) })),
    event: async () => null,
  }
  const inbox = current
  const { run, count } = createScheduler()
  const reading = createReading({
    store,
    inboxes: { inbox: async () => current } as never,
    scheduler: {
      count,
      run: (...asked) => (isRefused ? Promise.reject(rateLimited(1)) : run(...asked)),
    },
    clock: { now: () => 10 } as never,
  })
  return {
    reading,
    inbox,
    change(to: InboxRow | null): void {
      current = to
    },
    refuse(is: boolean): void {
      isRefused = is
    },
  }
}

const MEMORY = {
  reserve: async () => true,
  resize: () => undefined,
  whileReading: (read: () => Promise<unknown>) => read(),
} as unknown as Reservation
