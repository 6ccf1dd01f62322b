/** The `Date` header is the service's clock: receipts, challenges and pages are dated by it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aMonitor } from '../support/pulse.ts'
import { startServer } from '../support/server.ts'

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
    const answer = await fetch(server.url + path, { ...init, signal: stop.signal })
    const aheadMs = Date.parse(answer.headers.get('date') ?? '') - server.now()
    assert.ok(aheadMs <= 0 && aheadMs > -2_000, `${path}: ${aheadMs} ms`)
  }
})
