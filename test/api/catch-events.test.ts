import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { CatchCapability, EventPage, EventQuery } from '../../src/client/index.ts'
import { anInbox, ask, INVALID_QUERY, send } from '../support/catch.ts'
import type { TestServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'

suite('the events of an inbox', () => {
  const theServer = shareServer()

  test('the list is newest first, and its cursor reaches every event once', async () => {
    const server = await theServer()
    const inbox = await anInbox(server)
    const owner = server.mayfly.catch(inbox)
    assert.deepEqual(await owner.page(), { events: [], nextCursor: null, latestSequence: 0 })
    for (let i = 1; i <= 45; i++) await send(server, inbox, { method: 'POST', body: `${i}` })

    const pages: number[][] = []
    let cursor: number | null = null
    do {
      const page: EventPage = await owner.page(cursor === null ? {} : { cursor })
      pages.push(page.events.map(({ sequence }) => sequence))
      assert.equal(page.latestSequence, 45)
      cursor = page.nextCursor
    } while (cursor !== null)
    assert.deepEqual(
      pages.map((page) => page.length),
      [20, 20, 5],
    )
    assert.deepEqual(
      pages.flat(),
      Array.from({ length: 45 }, (_, i) => 45 - i),
    )
    const { nextCursor } = await owner.page({ limit: 45 })
    assert.equal(nextCursor, null, 'a page that holds everything has nothing below it')
    assert.equal((await owner.page({ limit: 44 })).nextCursor, 2)
    assert.deepEqual(await owner.page({ cursor: 1 }), {
      events: [],
      nextCursor: null,
      latestSequence: 45,
    })
    const below: EventPage = await owner.page({ cursor: 3, limit: 50 })
    assert.deepEqual(
      below.events.map(({ sequence }) => sequence),
      [2, 1],
    )
    assert.equal((await owner.page({ cursor: 1_000_000 })).events.length, 20)
  })

  test('a cursor is stable: what arrives meanwhile shows on no later page', async () => {
    const server = await theServer()
    const inbox = await anInbox(server)
    const owner = server.mayfly.catch(inbox)
    for (let i = 1; i <= 4; i++) await send(server, inbox, {})
    const first = await owner.page({ limit: 2 })
    await send(server, inbox, {})
    await owner.deleteEvent(first.events[1]?.id ?? '')
    const second = await owner.page({ limit: 2, cursor: first.nextCursor ?? 0 })
    assert.deepEqual(
      second.events.map(({ sequence }) => sequence),
      [2, 1],
    )
    assert.equal(second.latestSequence, 5)
  })

  test('filters combine, and compare as documented', async () => {
    const server = await theServer()
    const inbox = await anInbox(server)
    const token = { authorization: `Bearer ${inbox.ingestToken}` }
    const sent: RequestInit[] = [
      { method: 'POST', body: 'one', headers: { 'content-type': 'application/json' } },
      {
        method: 'POST',
        body: 'two',
        headers: { ...token, 'content-type': 'APPLICATION/JSON ; a=b' },
      },
      { method: 'PUT', body: 'three', headers: { 'content-type': 'text/plain' } },
      { method: 'PUT', body: 'four', headers: { ...token, 'content-type': 'application/json' } },
      { method: 'DELETE', headers: token },
    ]
    for (const request of sent) await send(server, inbox, request)
    const found = async (query: Parameters<ReturnType<typeof server.mayfly.catch>['page']>[0]) =>
      (await server.mayfly.catch(inbox).page(query)).events.map(({ sequence }) => sequence)
    assert.deepEqual(await found({ access: 'public' }), [3, 1])
    assert.deepEqual(await found({ access: 'authenticated' }), [5, 4, 2])
    assert.deepEqual(await found({ method: 'put' }), [4, 3])
    assert.deepEqual(await found({ method: 'PUT' }), [4, 3])
    assert.deepEqual(await found({ method: 'GET' }), [])
    assert.deepEqual(await found({ contentType: 'application/json' }), [4, 2, 1])
    assert.deepEqual(await found({ contentType: 'Application/JSON; charset=utf-8' }), [4, 2, 1])
    assert.deepEqual(await found({ contentType: 'application' }), [])
    assert.deepEqual(await found({ contentType: 'application/json\0' }), [])
    assert.deepEqual(await found({ method: 'POST\0' }), [])
    assert.deepEqual(await found({ access: 'authenticated', method: 'PUT' }), [4])
    assert.deepEqual(
      await found({ access: 'authenticated', contentType: 'application/json', q: 'TW' }),
      [2],
    )
    assert.deepEqual(await found({ method: 'POST', cursor: 2 }), [1])
    const page = await server.mayfly.catch(inbox).page({ access: 'authenticated', limit: 2 })
    assert.deepEqual([page.nextCursor, page.latestSequence], [4, 5])
  })

  test('a query that is out of bounds, unknown, repeated, or names two places to begin is refused', async () => {
    const server = await theServer()
    const { publicId, ownerToken } = await anInbox(server)
    const bad = [
      'limit=0',
      'limit=51',
      'limit=-1',
      'limit=1.5',
      'limit=1e1',
      'limit=%2B5',
      'limit=05',
      'limit=',
      'limit=five',
      'limit=1&limit=2',
      'limit=9007199254740993',
      'cursor=0',
      'cursor=-1',
      'cursor=',
      'cursor=x',
      'cursor=9007199254740992',
      'cursor=99999999999999999999',
      'access=Public',
      'access=',
      'access=owner',
      'access=public&access=public',
      'method=',
      `method=${'x'.repeat(21)}`,
      'contentType=',
      `contentType=${'x'.repeat(256)}`,
      `q=${'x'.repeat(121)}`,
      'q=a&q=b',
      'surprise=1',
      'Limit=1',
      '__proto__=1',
      'constructor=1',
      '%FF=1',
      'limit[]=1',
      ...['after=', 'after=-1', 'after=-0', 'after=00', 'after=1.5', 'after=x', 'after=1&after=1'],
      ...['wait=', 'wait=-1', 'wait=-0', 'wait=31', 'wait=1.5', 'wait=x', 'wait=1&wait=1'],
      ...[2 ** 53, 2 ** 64].flatMap((one) => [`after=${BigInt(one)}`, `wait=${BigInt(one)}`]),
      ...['after=0&cursor=1', 'cursor=5&after=5', 'wait=1&cursor=1', 'wait=0&cursor=1'],
    ]
    for (const query of bad) {
      const answer = await ask(server, `/api/catch/${publicId}/events?${query}`, ownerToken)
      assert.deepEqual(answer, INVALID_QUERY, query)
    }
    const good = [
      '',
      'limit=1',
      'limit=50',
      'cursor=1',
      'cursor=9007199254740991',
      'q=',
      `q=${'x'.repeat(120)}`,
      `q=${'%E2%9A%A1'.repeat(120)}`,
      'method=x',
      'access=public',
      'limit=%35',
    ]
    for (const query of good) {
      const answer = await ask(server, `/api/catch/${publicId}/events?${query}`, ownerToken)
      assert.equal(answer.status, 200, query)
    }
  })
})

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
