import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { answerOf, NOT_FOUND } from '../support/answer.ts'
import { assertNowhere, DONE, ping, purchasePulse } from '../support/pulse.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'

const SECOND = 1_000

test('a capability is two tokens of their own kinds, which nobody stores, and is what the key gets again until a ping', async (t) => {
  const server = await startServer(t)
  const key = randomUUID()
  const body = '{"planId":"spark"}'
  const { bolt11, orderId } = JSON.parse((await purchasePulse(server, body, { key })).text)
  await server.pay(bolt11)
  server.clock.advance(2 * SECOND)
  const first = await answerOf(await fetch(`${server.url}/api/payments/${orderId}`))
  assert.equal(first.status, 200)
  const { settled, resource } = JSON.parse(first.text)
  assert.equal(settled, true)
  assert.deepEqual(Object.keys(resource), [
    'product',
    'publicId',
    'ownerToken',
    'pingToken',
    'expiresAt',
  ])
  assert.equal(resource.product, 'pulse')
  assert.match(resource.publicId, /^pulse_[0-9A-Za-z]{22}$/)
  assert.match(resource.ownerToken, /^pulse_owner_[0-9A-Za-z]{49}$/)
  assert.match(resource.pingToken, /^pulse_ping_[0-9A-Za-z]{49}$/)
  assert.deepEqual(await purchasePulse(server, body, { key }), first)

  assert.deepEqual(await ping(server, resource, { token: `${resource.pingToken}x` }), NOT_FOUND)
  assert.deepEqual(await purchasePulse(server, body, { key }), first, 'a refused ping is no use')
  assert.deepEqual(await ping(server, resource), DONE)
  assert.deepEqual(await purchasePulse(server, body, { key }), {
    status: 404,
    text: '{"error":"already delivered"}',
  })
  await assertNowhere(server, [resource.ownerToken, resource.pingToken])
})

suite('a purchase of a monitor with settings', () => {
  const theServer = shareServer()

  test('the monitor begins as it was asked for', async () => {
    const server = await theServer()
    const schedule = { cron: '0 3 * * *', timeZone: 'Europe/Berlin', graceSeconds: 900 }
    const settings = { name: 'backup', description: 'nightly', publicStatusEnabled: true }
    const key = randomUUID()
    const asked = { 'x-pulse-settings': JSON.stringify({ ...settings, schedule }) }
    const { text } = await purchasePulse(server, SPARK, { key, headers: asked })
    const { bolt11, orderId } = JSON.parse(text) as { bolt11: string; orderId: string }
    await server.pay(bolt11)
    const poll = await fetch(`${server.url}/api/payments/${orderId}`, {
      headers: { 'idempotency-key': key },
    })
    const { resource } = (await poll.json()) as { resource: never }
    const status = await server.mayfly.pulse(resource).status()
    assert.deepEqual(status.schedule, schedule)
    const { name, description, publicStatusEnabled, state } = status
    assert.deepEqual({ name, description, publicStatusEnabled }, settings)
    assert.equal(state, 'waiting')
    const again = await purchasePulse(server, SPARK, { key, headers: asked })
    assert.equal(again.text, '{"error":"already delivered"}', 'the status was a use')
    assert.equal((await purchasePulse(server, SPARK, { key })).status, 400)
  })

  test('what cannot be set is refused before there is an invoice, and says what it must be', async () => {
    const server = await theServer()
    for (const [settings, expected] of [
      [{ graceSeconds: 59 }, { field: 'graceSeconds', expected: '60 to 604800' }],
      [{ name: 'a\u202eb' }, { error: 'invalid settings' }],
      [{ schedule: { cron: '0 3 31 2 *', timeZone: 'UTC', graceSeconds: 60 } }, { field: 'cron' }],
      [
        { schedule: { cron: '* * * * *', timeZone: 'Mars', graceSeconds: 60 } },
        { field: 'timeZone' },
      ],
      [{ other: 1 }, { error: 'invalid settings' }],
    ] as const) {
      const told = await refused(server, { settings: JSON.stringify(settings) })
      for (const [name, value] of Object.entries(expected)) assert.equal(told[name], value)
    }
    const ofLong = { planId: 'long', settings: '{"graceSeconds":60}' }
    assert.equal((await refused(server, ofLong)).expected, '300 to 604800')
    assert.equal((await refused(server, { settings: '{' })).error, 'invalid settings')
    // As it always was: the body says the plan, and nothing else.
    assert.equal((await purchasePulse(server, '{"planId":"spark","name":"x"}')).status, 400)
  })
})

const SPARK = '{"planId":"spark"}'

/** A header carries ASCII alone, so all else is escaped. */
const escaped = (text: string): string =>
  text.replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)

async function refused(
  { url }: TestServer,
  { planId = 'spark', settings }: { planId?: string; settings: string },
): Promise<Record<string, unknown>> {
  const answer = await fetch(`${url}/api/payments/pulse`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
      'x-pulse-settings': escaped(settings),
    },
    body: JSON.stringify({ planId }),
  })
  assert.equal(answer.status, 400)
  return (await answer.json()) as Record<string, unknown>
}
