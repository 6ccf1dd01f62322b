/** How long a page may be, how bodies are shown in it, and that legitimate ones are whole. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { CatchCapability, EventPage } from '../../src/client/index.ts'
import { anInbox, send } from '../support/catch.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { query as inStore } from '../support/store.ts'
import { sendMany } from './catch-stream.ts'

const KIB = 1024
const MIB = 1024 * KIB
const PAGE_MOST = 6 * MIB

suite('the length of a page of events', () => {
  const theServer = shareServer()

  test('a body that escaping makes six times as long is sent as base64, and a page is 6 MiB at most, also of a search', async () => {
    const server = await theServer()
    const inbox = await anInbox(server, 'standard')
    const body = Buffer.alloc(256 * KIB, 1)
    for (let n = 0; n < 40; n++) await send(server, inbox, { method: 'POST', body })
    for (const filter of ['', '&q=%01']) {
      const pages = await allPages(server, inbox, filter)
      assert.ok(pages.length > 1)
      for (const { bytes } of pages) assert.ok(bytes <= PAGE_MOST, `${bytes} bytes`)
      const events = pages.flatMap(({ page }) => page.events)
      assert.deepEqual(
        events.map(({ sequence }) => sequence),
        downFrom(40),
      )
      for (const event of events) {
        assert.equal(event.bodyEncoding, 'base64')
        assert.deepEqual(Buffer.from(event.body, 'base64'), body)
      }
      assert.deepEqual(
        pages.map(({ page }) => page.latestSequence),
        pages.map(() => 40),
      )
    }
  })

  test('50 webhooks of 64 KiB are one page, binary or text', async () => {
    const server = await theServer()
    for (const body of [Buffer.alloc(64 * KIB, 'text'), Buffer.alloc(64 * KIB, 0xff)]) {
      const inbox = await anInbox(server, 'standard')
      for (let n = 0; n < 50; n++) await send(server, inbox, { method: 'POST', body })
      const [first, ...others] = await allPages(server, inbox)
      assert.equal(first?.page.events.length, 50)
      assert.deepEqual(others, [])
    }
  })

  test('an event above the length of a page has a page of its own', async (t) => {
    const server = await startServer(t)
    const inbox = await anInbox(server, 'long')
    await sendMany(server, inbox, { count: 3, body: () => 'x' })
    // A plan of the operator's may take so much; here it is stored as such a plan would.
    await inStore(
      server,
      server.databaseUrl.startsWith('sqlite')
        ? `update catch_event set body = zeroblob(${7 * MIB}), body_bytes = ${7 * MIB}, kept_bytes = ${7 * MIB} where sequence = 2`
        : `update catch_event set body = decode(repeat('00', ${7 * MIB}), 'hex'), body_bytes = ${7 * MIB}, kept_bytes = ${7 * MIB} where sequence = 2`,
    )
    const pages = await allPages(server, inbox)
    assert.deepEqual(
      pages.map(({ page }) => page.events.map(({ sequence }) => sequence)),
      [[3], [2], [1]],
    )
  })
})

/** The pages from the newest on, with their lengths in JSON. */
async function allPages(
  { url }: TestServer,
  { publicId, ownerToken }: CatchCapability,
  filter = '',
): Promise<{ bytes: number; page: EventPage }[]> {
  const pages: { bytes: number; page: EventPage }[] = []
  let cursor = ''
  for (;;) {
    const answer = await fetch(`${url}/api/catch/${publicId}/events?limit=50${filter}${cursor}`, {
      headers: { authorization: `Bearer ${ownerToken}` },
    })
    assert.equal(answer.status, 200)
    assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
    const text = await answer.text()
    const page = JSON.parse(text) as EventPage
    pages.push({ bytes: Buffer.byteLength(text), page })
    if (page.nextCursor === null) return pages
    cursor = `&cursor=${page.nextCursor}`
  }
}

const downFrom = (count: number): number[] => Array.from({ length: count }, (_, n) => count - n)
