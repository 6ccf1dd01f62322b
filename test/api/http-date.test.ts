/** The `Date` header is the service's clock: receipts, challenges and pages are dated by it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aMonitor } from '../support/pulse.ts'
import { startServer } from '../support/server.ts'

const SECOND = 1_000

test("every answer's Date is the service's clock, of the moment in which it is sent", async (t) => {
  const server = await startServer(t)
  const { publicId, ownerToken } = await aMonitor(server)
  const authorization = `Bearer ${ownerToken}`
  server.clock.jump(3 * 60 * 60_000)
  const stop = new AbortController()
  t.after(() => stop.abort())
  for (const [path, init] of [
    ['/health', {}],
    ['/', {}],
    ['/nothing/here', {}],
    ['/health', { method: 'DELETE' }],
    ['/c/catch_0000000000000000000000', { method: 'POST', body: 'x' }],
    [`/api/pulse/${publicId}/stream`, { headers: { authorization } }],
  ] as const) {
    // Until it is asked, the service has not seen that the machine's clock was set.
    const before = Math.max(server.now(), server.clock.now() - SECOND)
    const answer = await fetch(server.url + path, { ...init, signal: stop.signal })
    const date = Date.parse(answer.headers.get('date') ?? '')
    // It says the second, which may have begun before the request.
    assert.ok(date > before - SECOND && date <= server.now(), `${path}: ${date - before} ms`)
  }
})
