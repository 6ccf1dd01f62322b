import assert from 'node:assert/strict'
import { test } from 'node:test'
import { suspendInbox } from '../../src/catch/store.ts'
import type { CatchCapability } from '../../src/client/index.ts'
import { type AlertsSet, put } from '../support/alerts.ts'
import { anInbox, aSmallServer, asOperator, send, sendBare } from '../support/catch.ts'
import { limited } from '../support/limits.ts'
import { aMonitor } from '../support/pulse.ts'
import { startServer, type TestServer } from '../support/server.ts'

const DAY = 24 * 60 * 60 * 1000

test('the owner reads how often an inbox refused a request, why, and since when', async (t) => {
  const server = await aSmallServer(t)
  const inbox = await anInbox(server)
  assert.deepEqual(await refusalsOf(server, inbox), { total: 0, reasons: [] })
  const before = server.now()
  await sendBare(server, inbox, { body: 'x'.repeat(61) })
  server.clock.advance(5_000)
  await sendBare(server, inbox, { body: 'x'.repeat(99) })
  const headers = Array.from({ length: 257 }, (_, i) => `X-${i}: y`)
  await sendBare(server, inbox, { headers })
  for (const _ of [1, 2]) await sendBare(server, inbox, { body: 'x'.repeat(50) })
  assert.equal((await sendBare(server, inbox, { body: 'x' })).status, 401)
  const { total, reasons } = await refusalsOf(server, inbox)
  assert.equal(total, 4)
  const [large, full] = reasons
  assert.deepEqual([large?.reason, large?.count], ['too_large', 3])
  assert.deepEqual([full?.reason, full?.count, full?.firstAt], ['storage_full', 1, full?.lastAt])
  const [first = 0, last = 0] = [large?.firstAt, large?.lastAt].map((at) => Date.parse(at ?? ''))
  // The service's clock runs on its own, so that it may be a millisecond behind this one.
  assert.ok(Math.abs(first - before) < 5_000, `${first - before}`)
  assert.ok(last - first >= 5_000, `${last - first}`)
})

test('a request to an inbox that is used up, suspended or expired is counted as just that', async (t) => {
  const server = await startServer(t)
  const [used, suspended, expired] = await Promise.all([1, 2, 3].map(() => anInbox(server)))
  assert.ok(used && suspended && expired)
  await Promise.all(
    Array.from({ length: 130 }, () => send(server, used, { method: 'POST', body: '' })),
  )
  // The service still remembers this one as active.
  await send(server, suspended, { method: 'POST', body: '' })
  await asOperator(server, suspendInbox(suspended.publicId, server.now()))
  for (const _ of [1, 2]) await send(server, suspended, { method: 'POST', body: '' })
  const reasons = async (inbox: CatchCapability) =>
    (await refusalsOf(server, inbox)).reasons.map(({ reason, count }) => [reason, count])
  assert.deepEqual(await reasons(used), [['exhausted', 30]])
  assert.deepEqual(await reasons(suspended), [['suspended', 2]])
  server.clock.advance(DAY + 1000)
  await send(server, expired, { method: 'POST', body: '' })
  assert.deepEqual(await reasons(expired), [['expired', 1]])
})

test('a request above the rate of its inbox is counted as rate limited', async (t) => {
  const server = await limited(t, { 'ingest.spark': { perMinute: 0.01, burst: 2 } })
  const inbox = await anInbox(server)
  for (const status of [204, 204, 429, 429]) {
    assert.equal((await send(server, inbox, { method: 'POST', body: '' })).status, status)
  }
  // An alert of the service itself has no more room.
  const { publicId, ingestToken } = inbox
  const { body } = await put(server, await aMonitor(server), [{ inbox: publicId, ingestToken }])
  assert.equal((body as AlertsSet).destinations[0]?.test, '4xx')
  const { total, reasons } = await refusalsOf(server, inbox)
  assert.deepEqual([total, reasons[0]?.reason], [3, 'rate_limited'])
})

const refusalsOf = ({ mayfly }: TestServer, inbox: CatchCapability) =>
  mayfly.catch(inbox).refusals()
