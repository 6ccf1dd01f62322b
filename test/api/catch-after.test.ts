/** The list of events after a sequence, oldest first. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { CatchCapability, EventPage, EventQuery } from '../../src/client/index.ts'
import { anInbox, send } from '../support/catch.ts'
import type { TestServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'

const KIB = 1024
const MIB = 1024 * KIB

const sequences = ({ events }: EventPage): number[] => events.map(({ sequence }) => sequence)

/** The sequences of each page, when a client goes on after the last one that it got. */
async function allAfter(
  server: TestServer,
  inbox: CatchCapability,
  query: EventQuery & { after: number },
): Promise<number[][]> {
  const pages: number[][] = []
  for (let { after } = query; ; ) {
    const page = await server.mayfly.catch(inbox).page({ ...query, after })
    assert.equal(page.nextCursor, null)
    if (page.events.length === 0) return pages
    pages.push(sequences(page))
    after = page.events.at(-1)?.sequence ?? 0
  }
}

suite('the events after a sequence', () => {
  const theServer = shareServer()

  test('the events after a sequence come oldest first, and the last one is where a client goes on', async () => {
    const server = await theServer()
    const inbox = await anInbox(server)
    for (let i = 1; i <= 7; i++) await send(server, inbox, { method: 'POST', body: `${i}` })
    assert.deepEqual(await allAfter(server, inbox, { after: 0, limit: 3 }), [
      [1, 2, 3],
      [4, 5, 6],
      [7],
    ])
    assert.deepEqual(await allAfter(server, inbox, { after: 5 }), [[6, 7]])
    const { events } = await server.mayfly.catch(inbox).page()
    assert.deepEqual(await server.mayfly.catch(inbox).page({ after: 0 }), {
      events: events.toReversed(),
      nextCursor: null,
      latestSequence: 7,
    })
    for (const after of [7, 8, Number.MAX_SAFE_INTEGER]) {
      const page = await server.mayfly.catch(inbox).page({ after })
      assert.deepEqual(page, { events: [], nextCursor: null, latestSequence: 7 })
    }
  })

  test('a large page of the events after a sequence ends early, and nothing is left out', async () => {
    const server = await theServer()
    const inbox = await anInbox(server, 'long')
    const sizes = [MIB, 1, 2 * KIB, MIB, MIB, MIB, MIB, MIB, 3, MIB, 300 * KIB]
    for (const size of sizes) {
      await send(server, inbox, { method: 'POST', body: 'x'.repeat(size - 1) })
    }
    const pages = await allAfter(server, inbox, { after: 0 })
    assert.deepEqual(pages, [
      [1, 2, 3, 4, 5, 6, 7],
      [8, 9, 10, 11],
    ])
    const found = await allAfter(server, inbox, { after: 3, q: 'xxx', limit: 4 })
    assert.deepEqual(found, [
      [4, 5, 6, 7],
      [8, 10, 11],
    ])
  })
})
