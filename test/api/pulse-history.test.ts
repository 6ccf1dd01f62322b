import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { answerOf } from '../support/answer.ts'
import { aMonitor, type Owner } from '../support/pulse.ts'
import type { TestServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'

const history = async (
  { url }: TestServer,
  { publicId, ownerToken }: Owner,
  search = '',
): Promise<{ status: number; text: string }> =>
  answerOf(
    await fetch(`${url}/api/pulse/${publicId}/history${search}`, {
      headers: { authorization: `Bearer ${ownerToken}` },
    }),
  )

suite('the history of a monitor', () => {
  const theServer = shareServer()

  test('the SDK reads a history page by page or entry by entry', async () => {
    const server = await theServer()
    const monitor = server.mayfly.pulse(await aMonitor(server))
    for (let i = 0; i < 5; i++) await monitor.exit(i % 2)
    const first = await monitor.history({ limit: 2 })
    assert.equal(first.entries.length, 2)
    assert.ok(first.nextCursor)
    const second = await monitor.history({ limit: 2, cursor: first.nextCursor })
    const all: unknown[] = []
    for await (const entry of monitor.historyEntries({ limit: 2 })) all.push(entry)
    assert.deepEqual(all.slice(0, 4), [...first.entries, ...second.entries])
    const whole = await monitor.history()
    assert.deepEqual([whole.entries, whole.nextCursor], [all, null])
    assert.equal(whole.entries.filter(({ type }) => type === 'failed').length, 2)
  })

  test('a cursor or a limit that is none gets 400 that says what it must be', async () => {
    const server = await theServer()
    const monitor = await aMonitor(server)
    for (const search of ['cursor=', 'cursor=1', 'cursor=MS4yLjM0MA', `cursor=${'A'.repeat(90)}`]) {
      const field = search.split('=')[0]
      const url = `${server.url}/api/pulse/${monitor.publicId}/history?${search}`
      const answer = await fetch(url, {
        headers: { authorization: `Bearer ${monitor.ownerToken}` },
      })
      const body = (await answer.json()) as Record<string, unknown>
      const isGood = search === 'cursor=MS4yLjM0MA'
      assert.deepEqual(
        [answer.status, body.error, body.field],
        isGood ? [200, undefined, undefined] : [400, 'invalid query', field],
      )
    }
    for (const search of [
      'limit=0',
      'limit=201',
      'limit=x',
      'limit=1.5',
      'page=2',
      'cursor=MS4yLng',
    ]) {
      assert.equal((await history(server, monitor, `?${search}`)).status, 400, search)
    }
  })
})
