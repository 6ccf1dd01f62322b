import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { anInbox } from '../support/catch.ts'
import { register } from '../support/gate.ts'
import { PATH } from '../support/gate-app.ts'
import { aMonitor } from '../support/pulse.ts'
import { shareServer } from '../support/shared-server.ts'

/** A secret that no answer may repeat. */
const SENT = 'ECHO'
const JSON_BODY = { 'content-type': 'application/json' }

async function refused(address: string, request: RequestInit): Promise<unknown> {
  const answer = await fetch(address, request)
  const text = await answer.text()
  assert.equal(answer.status, 400, text)
  assert.ok(!text.includes(SENT), text)
  return JSON.parse(text)
}

suite('a 400', () => {
  const theServer = shareServer({ MAYFLY_GATE: 'on' })

  test('a purchase that is refused learns which member or header is wrong, and what it must be', async () => {
    const { url } = await theServer()
    const key = { 'idempotency-key': randomUUID() }
    const plans = { field: 'planId', expected: 'spark, standard or long' }
    const buy = (body: string, headers: Record<string, string> = key) =>
      refused(`${url}/api/payments/catch`, {
        method: 'POST',
        headers: { ...JSON_BODY, ...headers },
        body,
      })
    assert.deepEqual(await buy(`{"planId":"${SENT}"}`), { error: 'invalid plan', ...plans })
    const error = 'invalid request body'
    assert.deepEqual(await buy('{}'), { error, ...plans })
    assert.deepEqual(await buy(`{"planId":"spark","${SENT}":1}`), {
      error,
      expected: 'only planId',
    })
    assert.deepEqual(await buy(`["${SENT}"]`), { error, expected: 'an object' })
    const twice = await buy(`{"planId":"${SENT}","planId":"spark"}`)
    const expected = 'JSON with each member once, and at most 2000 of { } [ ] , :'
    assert.deepEqual(twice, { error, expected })
    assert.deepEqual(await buy(`{"planId":[${'{},'.repeat(700)}1]}`), { error, expected })
    const short = { 'idempotency-key': SENT }
    const keyed = {
      error: 'invalid idempotency key',
      field: 'Idempotency-Key',
      expected: '8 to 128 visible ASCII characters',
    }
    assert.deepEqual(await buy('{"planId":"spark"}', short), keyed)
    for (const path of ['payments', 'extensions']) {
      const poll = `${url}/api/${path}/order_${'0'.repeat(22)}`
      assert.deepEqual(await refused(poll, { headers: short }), keyed)
    }
    assert.deepEqual(await buy('{"planId":"spark"}', { ...key, 'x-payment-protocol': SENT }), {
      error: 'unknown payment protocol',
      field: 'X-Payment-Protocol',
      expected: 'payment or l402',
    })
    assert.deepEqual(await buy('{"planId":"spark"}', { ...key, 'content-type': `text/${SENT}` }), {
      error: 'unsupported media type',
      field: 'Content-Type',
      expected: 'application/json',
    })
    assert.deepEqual(await buy('{"planId":"spark"}', { ...key, 'content-encoding': SENT }), {
      error: 'unsupported media type',
      field: 'Content-Encoding',
      expected: 'left out',
    })
  })

  test('a signal to a monitor that is refused learns which parameter is wrong', async () => {
    const server = await theServer()
    const { publicId, pingToken } = await aMonitor(server)
    assert.deepEqual(
      await refused(`${server.url}/p/${publicId}/start?rid=${SENT}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${pingToken}` },
      }),
      { error: 'invalid query', field: 'rid', expected: 'one UUID, beside nothing else' },
    )
  })

  test('a whisper that is refused learns which header is wrong', async () => {
    const { url } = await theServer()
    const buy = (headers: Record<string, string>, bytes = 64) =>
      refused(`${url}/api/payments/whisper`, {
        method: 'POST',
        headers: {
          'idempotency-key': randomUUID(),
          'content-type': 'application/octet-stream',
          'x-whisper-plan': 'spark',
          ...headers,
        },
        body: new Uint8Array(bytes),
      })
    assert.deepEqual(await buy({ 'x-whisper-plan': SENT }), {
      error: 'invalid plan',
      field: 'X-Whisper-Plan',
      expected: 'spark, standard or long',
    })
    for (const [sent, most] of [
      [SENT, 402],
      ['4', 3],
    ]) {
      assert.deepEqual(await buy({ 'x-whisper-read-limit': String(sent) }), {
        error: 'invalid read limit',
        field: 'X-Whisper-Read-Limit',
        expected: `1 to ${most}`,
      })
    }
    assert.deepEqual(await buy({ 'x-whisper-reveal-at': SENT }), {
      error: 'invalid reveal time',
      field: 'X-Whisper-Reveal-At',
      expected: 'ISO 8601 with an offset, in the future and inside the lifetime of the plan',
    })
    assert.deepEqual(await buy({}, 29), {
      error: 'invalid ciphertext',
      expected: 'at least 30 bytes',
    })
  })

  test('settings and queries that are refused name the field and its bounds', async () => {
    const server = await theServer()
    const { publicId, ownerToken } = await aMonitor(server)
    const change = (settings: object) =>
      refused(`${server.url}/api/pulse/${publicId}`, {
        method: 'PATCH',
        headers: { ...JSON_BODY, authorization: `Bearer ${ownerToken}` },
        body: JSON.stringify(settings),
      })
    for (const [field, expected, value] of [
      ['expectedIntervalSeconds', '20 to 604800', 19],
      ['graceSeconds', '60 to 604800', SENT],
      ['publicStatusEnabled', 'true or false', SENT],
      ['description', 'at most 240 characters', SENT.repeat(61)],
      ['name', 'One line of at most 80 characters, none of them a control character', `${SENT}\n`],
    ]) {
      const told = await change({ name: 'a', [String(field)]: value })
      assert.deepEqual(told, { error: 'invalid settings', field, expected })
    }
    const expected =
      'only name, description, expectedIntervalSeconds, graceSeconds and publicStatusEnabled'
    assert.deepEqual(await change({ [SENT]: 1 }), { error: 'invalid settings', expected })
    const inbox = await anInbox(server)
    const list = (query: string) =>
      refused(`${server.url}/api/catch/${inbox.publicId}/events?${query}`, {
        headers: { authorization: `Bearer ${inbox.ownerToken}` },
      })
    const error = 'invalid query'
    assert.deepEqual(await list('limit=51'), { error, field: 'limit', expected: '1 to 50' })
    assert.deepEqual(await list(`access=${SENT}`), {
      error,
      field: 'access',
      expected: 'public or authenticated',
    })
    assert.deepEqual(await list('after=1&cursor=2'), {
      error,
      field: 'cursor',
      expected: 'none together with after or wait',
    })
  })

  test('a proof that is refused learns what a preimage looks like', async () => {
    const server = await theServer()
    const project = await register(server)
    const visit = { route: 'render', method: 'POST', path: PATH }
    const { intentId } = await server.mayfly.gate(project).intent(visit)
    const told = await refused(`${server.url}/api/gate/intents/${intentId}/prove`, {
      method: 'POST',
      headers: {
        ...JSON_BODY,
        authorization: `Bearer ${project.capability}`,
        'x-gate-project': project.projectId,
      },
      body: JSON.stringify({ preimage: SENT }),
    })
    assert.deepEqual(told, {
      error: 'malformed proof',
      field: 'preimage',
      expected: '64 lower-case hex digits',
    })
  })
})
