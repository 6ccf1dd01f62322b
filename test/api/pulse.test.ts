import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { readPlans } from '../../src/catalog.ts'
import type { PulseCapability } from '../../src/client/index.ts'
import { type TokenKind, tokenOf } from '../../src/lib/ids.ts'
import { PULSE_PLANS, PulsePlan } from '../../src/pulse/schema.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { startServer, type TestServer } from '../support/server.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE
/** The server looks for what is over this often. */
const PURGE = 30_000
/** The most of an ignored body that is read for the sake of its connection. */
const DRAIN = 64 * 1024
const DONE = { status: 204, text: '' }
const NOT_FOUND = { status: 404, text: '{"error":"not found"}' }
const UNAUTHORIZED = { status: 401, text: '{"error":"unauthorized"}' }
const INVALID_SETTINGS = { status: 400, text: '{"error":"invalid settings"}' }
const INVALID_BODY = { status: 400, text: '{"error":"invalid request body"}' }
const LIMITED = { status: 429, text: '{"error":"rate limited"}' }
const UNSUPPORTED = { status: 400, text: '{"error":"unsupported media type"}' }

// Buying

test('a stranger buys a monitor, pings it, reads it, names it and ends it', async (t) => {
  const { mayfly, pay } = await startServer(t)
  const capability = await mayfly.buyPulse({
    planId: 'spark',
    onInvoice: ({ bolt11 }) => pay(bolt11),
  })
  const monitor = mayfly.pulse(capability)
  assert.equal((await monitor.status()).state, 'waiting')
  await monitor.ping()
  assert.equal((await monitor.status()).state, 'operational')
  const { publicStatusId } = await monitor.update({ name: 'backup', publicStatusEnabled: true })
  assert.equal((await mayfly.pulsePublicStatus(publicStatusId)).name, 'backup')
  await monitor.destroy()
  await assert.rejects(monitor.status(), { phrase: 'not found', status: 404 })
})

test('the catalogue has the plans of PULSE, with their limits and nothing else', async (t) => {
  const { mayfly } = await startServer(t)
  const { products } = await mayfly.catalog()
  assert.match(products.pulse.description, /no real money/)
  assert.deepEqual(
    products.pulse.plans.map(({ bestFor, ...plan }) => plan),
    [
      {
        planId: 'spark',
        priceSats: 50,
        durationLabel: '24 hours',
        available: true,
        heartbeatLimit: 4_500,
        suggestedCadenceSeconds: 60,
        minimumGraceSeconds: 60,
      },
      {
        planId: 'standard',
        priceSats: 300,
        durationLabel: '30 days',
        available: true,
        heartbeatLimit: 10_000,
        suggestedCadenceSeconds: 300,
        minimumGraceSeconds: 60,
      },
      {
        planId: 'long',
        priceSats: 900,
        durationLabel: '180 days',
        available: true,
        heartbeatLimit: 20_000,
        suggestedCadenceSeconds: 900,
        minimumGraceSeconds: 300,
      },
    ],
  )
})

test('a quote names product, plan and price, and a purchase of another shape gets none', async (t) => {
  const server = await startServer(t)
  const { status, text } = await purchase(server, '{"planId":"standard"}')
  const { product, planId, amountSats, network } = JSON.parse(text)
  assert.deepEqual([status, product, planId], [402, 'pulse', 'standard'])
  assert.deepEqual([amountSats, network], [300, 'regtest'])
  assert.deepEqual(await purchase(server, '{"planId":"mega"}'), {
    status: 400,
    text: '{"error":"invalid plan"}',
  })
  assert.deepEqual(await purchase(server, '{"planId":"spark","name":"x"}'), INVALID_BODY)
  assert.equal(rows(server, 'select * from purchase_order').length, 1)
})

test('the file of the operator changes plans, and a plan that is not on sale cannot be bought', async (t) => {
  const server = await aServerWith(t, {
    spark: { priceSats: 7, heartbeatLimit: 1, suggestedCadenceSeconds: 5, minimumGraceSeconds: 1 },
    long: { available: false },
  })
  const capability = await aMonitor(server)
  const { expectedIntervalSeconds, graceSeconds, heartbeatLimit } = await server.mayfly
    .pulse(capability)
    .status()
  assert.deepEqual([expectedIntervalSeconds, graceSeconds, heartbeatLimit], [20, 60, 1])
  assert.deepEqual(await purchase(server, '{"planId":"long"}'), {
    status: 400,
    text: '{"error":"invalid plan"}',
  })
})

test('a plan that cannot be sold stops the start', () => {
  for (const [plan, reason] of [
    [{ heartbeatLimit: 0 }, /pulse\.spark\.heartbeatLimit/],
    [{ minimumGraceSeconds: 1.5 }, /pulse\.spark\.minimumGraceSeconds/],
    [{ surprise: 1 }, /pulse\.spark/],
  ] as const) {
    const file = { pulse: { spark: plan } }
    assert.throws(() => readPlans(file, 'pulse', PulsePlan, PULSE_PLANS), reason)
  }
})

test('a capability is two tokens of their own kinds, and is what the key gets again until a ping', async (t) => {
  const server = await startServer(t)
  const key = randomUUID()
  const body = '{"planId":"spark"}'
  const { bolt11, orderId } = JSON.parse((await purchase(server, body, key)).text)
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
  assert.deepEqual(await purchase(server, body, key), first)

  assert.deepEqual(await ping(server, resource, { token: `${resource.pingToken}x` }), NOT_FOUND)
  assert.deepEqual(await purchase(server, body, key), first, 'a refused ping is no use')
  assert.deepEqual(await ping(server, resource), DONE)
  assert.deepEqual(await purchase(server, body, key), {
    status: 404,
    text: '{"error":"already delivered"}',
  })
})

test('every owner call that succeeds ends the replay too, and one that is refused does not', async (t) => {
  const server = await startServer(t)
  for (const [method, body] of [
    ['GET', undefined],
    ['PATCH', '{}'],
    ['DELETE', undefined],
  ] as const) {
    const key = randomUUID()
    const capability = await aMonitor(server, 'spark', key)
    const repeat = () => purchase(server, '{"planId":"spark"}', key)
    assert.equal((await repeat()).status, 200)
    assert.deepEqual(await patch(server, capability, '{"graceSeconds":1}'), INVALID_SETTINGS)
    assert.equal((await repeat()).status, 200)
    assert.ok((await owner(server, capability, method, { body })).status < 300, method)
    assert.equal((await repeat()).text, '{"error":"already delivered"}', method)
  }
})

test('the store holds no token', async (t) => {
  const server = await startServer(t)
  const { ownerToken, pingToken, publicId } = await aMonitor(server)
  await server.mayfly.pulse({ publicId, ownerToken, pingToken }).ping()
  await assertNowhere(server, [ownerToken, pingToken])
})

// Pinging

test('a ping is recorded, and counts', async (t) => {
  const server = await startServer(t)
  const capability = await aMonitor(server)
  const before = server.clock.now()
  const response = await fetch(`${server.url}/p/${capability.publicId}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${capability.pingToken}` },
  })
  assert.equal(response.status, 204)
  assert.equal(response.headers.get('cache-control'), 'no-store')
  assert.equal(response.headers.get('x-content-type-options'), 'nosniff')
  assert.equal(response.headers.get('access-control-allow-origin'), '*')
  const status = await server.mayfly.pulse(capability).status()
  assert.equal(status.acceptedHeartbeatCount, 1)
  assert.equal(status.remainingHeartbeats, 4_499)
  assert.ok(Date.parse(status.lastPingAt ?? '') >= before)
  assert.deepEqual(status.recentHeartbeats, [status.lastPingAt])
})

test('a ping without the one right token is not found, whatever is wrong with it', async (t) => {
  const server = await startServer(t)
  const capability = await aMonitor(server)
  const other = await aMonitor(server)
  const { publicId, pingToken } = capability
  const wrong: Record<string, string>[] = [
    {},
    { authorization: '' },
    { authorization: 'Bearer' },
    { authorization: 'Bearer x' },
    { authorization: pingToken },
    { authorization: `Basic ${pingToken}` },
    { authorization: `Bearer ${pingToken} ${pingToken}` },
    { authorization: `Bearer ${typo(pingToken)}` },
    { authorization: `Bearer ${capability.ownerToken}` },
    { authorization: `Bearer ${other.pingToken}` },
    { authorization: `Bearer ${aToken('pulse_ping')}` },
    { authorization: `Bearer ${aToken('catch_ingest')}` },
  ]
  for (const isKnown of [false, true]) {
    // Before and after the right token has made the server remember the monitor.
    if (isKnown) assert.deepEqual(await ping(server, capability), DONE)
    for (const headers of wrong) {
      const url = `${server.url}/p/${publicId}`
      const answer = await fetch(url, { method: 'POST', headers })
      assert.equal(answer.headers.get('www-authenticate'), null)
      assert.deepEqual(await answerOf(answer), NOT_FOUND, JSON.stringify(headers))
    }
  }
  for (const id of ['x', 'pulse_', `${publicId}x`, publicId.slice(0, -1), 'y'.repeat(300), '%00']) {
    assert.deepEqual(await ping(server, { publicId: id, pingToken }), NOT_FOUND, id)
  }
  const { publicStatusId, acceptedHeartbeatCount } = await server.mayfly.pulse(capability).status()
  assert.deepEqual(await ping(server, { publicId: publicStatusId, pingToken }), NOT_FOUND)
  assert.equal(acceptedHeartbeatCount, 1)
  const twice = await exchange(
    server.url,
    `POST /p/${publicId} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${pingToken}\r\nAuthorization: Bearer ${pingToken}\r\nConnection: close\r\n\r\n`,
  )
  assert.equal(twice.status, 404)
})

test('only POST is a ping, and a preflight is none', async (t) => {
  const server = await startServer(t)
  const capability = await aMonitor(server)
  const url = `${server.url}/p/${capability.publicId}`
  const headers = { authorization: `Bearer ${capability.pingToken}` }
  for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    const answer = await fetch(url, { method, headers })
    assert.equal(answer.status, 405, method)
    assert.equal(answer.headers.get('allow'), 'POST', method)
  }
  const preflight = await fetch(url, {
    method: 'OPTIONS',
    headers: {
      origin: 'https://app.example',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization',
    },
  })
  assert.equal(preflight.status, 204)
  assert.equal(preflight.headers.get('access-control-allow-headers'), 'authorization')
  assert.equal((await server.mayfly.pulse(capability).status()).acceptedHeartbeatCount, 0)
})

test('the body of a ping is ignored: any type, any length, broken or not', async (t) => {
  const server = await startServer(t)
  const capability = await aMonitor(server)
  const bodies: [note: string, body: string, headers: Record<string, string>][] = [
    ['JSON', '{"a":1}', { 'content-type': 'application/json' }],
    ['broken JSON', '{"a":', { 'content-type': 'application/json' }],
    ['no JSON at all', '', { 'content-type': 'application/json' }],
    ['a form', 'a=1&b=%ZZ', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['parts without a boundary', 'x', { 'content-type': 'multipart/form-data' }],
    ['a type that is none', 'x', { 'content-type': 'json' }],
    ['a type of signs', 'x', { 'content-type': ';;=,/' }],
    ['a coding that it does not have', 'x', { 'content-encoding': 'gzip' }],
    ['all that keeps a connection', 'x'.repeat(DRAIN), { 'content-type': 'text/plain' }],
  ]
  for (const [note, body, headers] of bodies) {
    assert.deepEqual(await ping(server, capability, { body, headers }), DONE, note)
  }
  assert.equal(
    (await server.mayfly.pulse(capability).status()).acceptedHeartbeatCount,
    bodies.length,
  )
})

test('a short body keeps the connection, and one past 64 KiB closes it after the 204', async (t) => {
  const server = await startServer(t)
  const capability = await aMonitor(server)
  const short = await exchange(
    server.url,
    pingHead(capability, `Content-Length: ${DRAIN}`),
    'x'.repeat(DRAIN),
    pingHead(capability, 'Connection: close'),
  )
  assert.deepEqual(short.statuses, [204, 204])
  for (const length of [DRAIN + 1, 8 * 1024 * 1024]) {
    const body = 'x'.repeat(length)
    const heads: [string, string][] = [
      [`Content-Length: ${length}`, body],
      ['Transfer-Encoding: chunked', `${length.toString(16)}\r\n${body}\r\n0\r\n\r\n`],
    ]
    for (const [framing, sent] of heads) {
      const long = await exchange(server.url, pingHead(capability, framing), sent)
      assert.deepEqual(long.statuses, [204], framing)
      assert.equal(long.headers.get('connection'), 'close', framing)
      assert.equal(long.headers.get('access-control-allow-origin'), '*', framing)
      assert.equal(long.headers.get('x-content-type-options'), 'nosniff', framing)
    }
  }
  assert.equal((await server.mayfly.pulse(capability).status()).acceptedHeartbeatCount, 6)
})

test('a ping does not wait for its body', async (t) => {
  const server = await startServer(t)
  const capability = await aMonitor(server)
  for (const framing of ['Content-Length: 10', 'Content-Length: 100000000']) {
    const { hostname, port } = new URL(server.url)
    const socket = connect(Number(port), hostname)
    socket.write(pingHead(capability, framing))
    const [answer] = await new Promise<[Buffer]>((resolve) => {
      socket.once('data', (data) => resolve([data]))
    })
    assert.match(answer.toString('latin1'), /^HTTP\/1\.1 204 /, framing)
    socket.destroy()
  }
})

test('a long body of a stranger is not found, and closes the connection', async (t) => {
  const server = await startServer(t)
  const answer = await exchange(
    server.url,
    'POST /p/pulse_x HTTP/1.1\r\nHost: x\r\nContent-Length: 65537\r\n\r\n',
  )
  assert.deepEqual(answer.statuses, [404])
  assert.equal(answer.headers.get('connection'), 'close')
})

test('a ping leaves nothing of its body in the store or in the log', async (t) => {
  const server = await startServer(t, { MAYFLY_LOG_LEVEL: 'trace' })
  const capability = await aMonitor(server)
  const marker = 'only-in-the-body-5f2c'
  const bodies = [marker, `{"${marker}":1}`, `${marker} `.repeat(10_000)]
  for (const body of bodies) {
    const headers = { 'content-type': 'application/json' }
    assert.deepEqual(await ping(server, capability, { body, headers }), DONE)
  }
  await assertNowhere(server, [marker, capability.pingToken])
  assert.ok(server.logged.some((line) => line.includes('/p/:publicId')))
  assert.ok(!server.logged.some((line) => line.includes(`/p/${capability.publicId}`)))
})

test('of 200 pings at once with room for 100, exactly 100 are accepted', async (t) => {
  const server = await aServerWith(t, { spark: { heartbeatLimit: 100 } })
  const capability = await aMonitor(server)
  const answers = await Promise.all(Array.from({ length: 200 }, () => ping(server, capability)))
  assert.equal(answers.filter(({ status }) => status === 204).length, 100)
  assert.equal(answers.filter(({ text }) => text === NOT_FOUND.text).length, 100)
  const status = await server.mayfly.pulse(capability).status()
  assert.equal(status.state, 'exhausted')
  assert.deepEqual([status.acceptedHeartbeatCount, status.remainingHeartbeats], [100, 0])
  assert.equal(status.recentHeartbeats.length, 100)
  assert.deepEqual(await ping(server, capability), NOT_FOUND)
  await server.restart()
  assert.deepEqual(await ping(server, capability), NOT_FOUND)
})

test('a restart forgets no heartbeat and no setting', async (t) => {
  const server = await startServer(t)
  const capability = await aMonitor(server)
  await server.mayfly.pulse(capability).update({ name: 'nightly', publicStatusEnabled: true })
  assert.deepEqual(await ping(server, capability), DONE)
  const before = await server.mayfly.pulse(capability).status()
  await server.restart()
  assert.deepEqual(await server.mayfly.pulse(capability).status(), before)
  assert.deepEqual(await ping(server, capability), DONE)
  assert.equal((await server.mayfly.pulse(capability).status()).acceptedHeartbeatCount, 2)
})

// The owner

test('the status has every field, in this order', async (t) => {
  const server = await startServer(t)
  const capability = await aMonitor(server)
  const read = async () => JSON.parse((await owner(server, capability, 'GET')).text)
  const waiting = await read()
  const { createdAt, publicStatusId } = waiting
  assert.match(createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.match(publicStatusId, /^pulse_status_[0-9A-Za-z]{22}$/)
  const expected = {
    publicId: capability.publicId,
    planId: 'spark',
    state: 'waiting',
    name: '',
    description: '',
    expectedIntervalSeconds: 60,
    graceSeconds: 60,
    publicStatusEnabled: false,
    publicStatusId,
    heartbeatLimit: 4_500,
    acceptedHeartbeatCount: 0,
    remainingHeartbeats: 4_500,
    lastPingAt: null,
    nextExpectedAt: null,
    lateAt: null,
    stateChangedAt: createdAt,
    createdAt,
    expiresAt: capability.expiresAt,
    recentHeartbeats: [],
  }
  assert.equal(Date.parse(capability.expiresAt) - Date.parse(createdAt), DAY)
  assert.equal(JSON.stringify(waiting), JSON.stringify(expected))

  await ping(server, capability)
  server.clock.advance(MINUTE)
  await ping(server, capability)
  const operational = await read()
  const [last, first] = operational.recentHeartbeats
  const plus = (time: string, ms: number) => new Date(Date.parse(time) + ms).toISOString()
  assert.equal(
    JSON.stringify(operational),
    JSON.stringify({
      ...expected,
      state: 'operational',
      acceptedHeartbeatCount: 2,
      remainingHeartbeats: 4_498,
      lastPingAt: last,
      nextExpectedAt: plus(last, MINUTE),
      lateAt: plus(last, 2 * MINUTE),
      stateChangedAt: first,
      recentHeartbeats: [last, first],
    }),
  )
})

test('the state goes its way: waiting, operational, late, operational, exhausted, expired', async (t) => {
  const server = await aServerWith(t, { spark: { heartbeatLimit: 2 } })
  const capability = await aMonitor(server)
  const monitor = server.mayfly.pulse(capability)
  const state = async () => (await monitor.status()).state
  assert.equal(await state(), 'waiting')
  server.clock.advance(20 * MINUTE)
  assert.equal(await state(), 'waiting', 'there is no deadline before the first ping')
  await monitor.ping()
  assert.equal(await state(), 'operational')
  server.clock.advance(2 * MINUTE)
  const late = await monitor.status()
  assert.equal(late.state, 'late')
  assert.equal(late.stateChangedAt, late.lateAt)
  const changed = await monitor.update({ expectedIntervalSeconds: 600 })
  assert.equal(changed.state, 'operational')
  assert.ok(Date.parse(changed.stateChangedAt) > Date.parse(late.stateChangedAt))
  await monitor.ping()
  const exhausted = await monitor.status()
  assert.equal(exhausted.state, 'exhausted')
  assert.deepEqual([exhausted.nextExpectedAt, exhausted.lateAt], [null, null])
  assert.equal(exhausted.stateChangedAt, exhausted.lastPingAt)
  server.clock.advance(DAY)
  const expired = await monitor.status()
  assert.equal(expired.state, 'expired')
  assert.equal(expired.stateChangedAt, expired.expiresAt)
  assert.deepEqual([expired.nextExpectedAt, expired.lateAt], [null, null])
  assert.deepEqual(expired.recentHeartbeats, exhausted.recentHeartbeats)
})

test('owner calls need the owner token: 401 for none or another kind, 404 for another one', async (t) => {
  const server = await startServer(t)
  const capability = await aMonitor(server)
  const other = await aMonitor(server)
  const { ownerToken } = capability
  const noToken: (string | null)[] = [
    null,
    '',
    'Bearer',
    'Bearer x',
    ownerToken,
    `Basic ${ownerToken}`,
    `Bearer ${ownerToken}, Bearer ${ownerToken}`,
    `Bearer ${typo(ownerToken)}`,
    `Bearer ${capability.pingToken}`,
    `Bearer ${aToken('catch_owner')}`,
  ]
  const strange = [`Bearer ${other.ownerToken}`, `Bearer ${aToken('pulse_owner')}`]
  const ids = [capability.publicId, `pulse_${'0'.repeat(22)}`, 'x', 'public']
  for (const method of ['GET', 'PATCH', 'DELETE']) {
    // A body that is wrong in itself: authentication comes first.
    const body = method === 'PATCH' ? '{"surprise":' : undefined
    for (const id of ids) {
      for (const authorization of [...noToken, ...strange]) {
        const answer = await fetch(`${server.url}/api/pulse/${id}`, {
          method,
          headers: authorization === null ? {} : { authorization },
          ...(body === undefined ? {} : { body }),
        })
        const note = `${method} ${id} ${authorization}`
        const isStrange = authorization !== null && strange.includes(authorization)
        assert.equal(answer.headers.get('www-authenticate'), isStrange ? null : 'Bearer', note)
        assert.deepEqual(await answerOf(answer), isStrange ? NOT_FOUND : UNAUTHORIZED, note)
      }
      if (id === capability.publicId) continue
      const stray = await owner(server, { publicId: id, ownerToken }, method, { body })
      assert.deepEqual(stray, NOT_FOUND, `${method} ${id}`)
    }
  }
  assert.equal((await owner(server, capability, 'GET')).status, 200)
  assert.equal((await owner(server, other, 'GET')).status, 200)
})

test('a path of the owner names the methods it takes', async (t) => {
  const server = await startServer(t)
  const { publicId, ownerToken } = await aMonitor(server)
  for (const method of ['POST', 'PUT', 'HEAD', 'OPTIONS']) {
    const answer = await fetch(`${server.url}/api/pulse/${publicId}`, {
      method,
      headers: { authorization: `Bearer ${ownerToken}` },
    })
    assert.equal(answer.status, 405, method)
    assert.equal(answer.headers.get('allow'), 'DELETE, GET, PATCH', method)
  }
})

test('settings change alone or together, and the answer is the status with them', async (t) => {
  const server = await startServer(t)
  const capability = await aMonitor(server)
  const monitor = server.mayfly.pulse(capability)
  const before = await monitor.status()
  assert.deepEqual(await monitor.update({}), before)
  const all = {
    name: 'Nightly ⚡ backup',
    description: '😀'.repeat(240),
    expectedIntervalSeconds: 604_800,
    graceSeconds: 604_800,
    publicStatusEnabled: true,
  }
  assert.deepEqual(await monitor.update(all), { ...before, ...all })
  assert.deepEqual(await monitor.status(), { ...before, ...all })
  assert.deepEqual(await monitor.update({ name: '' }), { ...before, ...all, name: '' })
  assert.deepEqual(await monitor.update({ publicStatusEnabled: false, description: '' }), {
    ...before,
    ...all,
    name: '',
    description: '',
    publicStatusEnabled: false,
  })
})

test('a name may hold any character', async (t) => {
  const server = await startServer(t)
  const monitor = server.mayfly.pulse(await aMonitor(server))
  const names = ['\u0000a\u0000', '\u0001\u001f\u007f\u0085', '\u202eabc', '\ufffe\uffff', '👨‍👩‍👧']
  for (const name of names) {
    assert.equal((await monitor.update({ name, description: name })).name, name)
    const { name: kept, description } = await monitor.status()
    assert.deepEqual([kept, description], [name, name])
  }
})

test('settings that are refused change nothing', async (t) => {
  const server = await startServer(t)
  const capability = await aMonitor(server, 'long')
  const before = await owner(server, capability, 'GET')
  const refused: [body: string, type: string | null, answer: Answer][] = [
    ['{"graceSeconds":299}', 'application/json', INVALID_SETTINGS],
    ['{"name":"x","graceSeconds":60}', 'application/json', INVALID_SETTINGS],
    ['{"name":"x","surprise":1}', 'application/json', INVALID_SETTINGS],
    ['{"expectedIntervalSeconds":19}', 'application/json', INVALID_SETTINGS],
    ['[]', 'application/json; charset=utf-8', INVALID_SETTINGS],
    ['{"name":"x"', 'application/json', INVALID_BODY],
    ['', 'application/json', INVALID_BODY],
    ['', null, INVALID_BODY],
    ['{"name":"x"}', 'text/plain', UNSUPPORTED],
    ['{"name":"x"}', 'json', UNSUPPORTED],
    ['name=x', 'application/x-www-form-urlencoded', UNSUPPORTED],
    [
      `{"name":"${' '.repeat(16_384)}"}`,
      'application/json',
      { status: 400, text: '{"error":"request too large"}' },
    ],
  ]
  for (const [body, type, answer] of refused) {
    assert.deepEqual(await patch(server, capability, body, type), answer, `${type} ${body}`)
  }
  assert.deepEqual(await owner(server, capability, 'GET'), before)
  const graces = await patch(server, capability, '{"graceSeconds":300}')
  assert.equal(graces.status, 200)
})

test('a destroyed monitor is gone at once, for everybody', async (t) => {
  const server = await startServer(t)
  const capability = await aMonitor(server)
  const other = await aMonitor(server)
  const monitor = server.mayfly.pulse(capability)
  await monitor.ping()
  const { publicStatusId } = await monitor.update({ name: 'gone', publicStatusEnabled: true })
  assert.deepEqual(await owner(server, capability, 'DELETE'), DONE)

  assert.deepEqual(await ping(server, capability), NOT_FOUND)
  assert.deepEqual(await owner(server, capability, 'GET'), NOT_FOUND)
  assert.deepEqual(await patch(server, capability, '{}'), NOT_FOUND)
  assert.deepEqual(await owner(server, capability, 'DELETE'), NOT_FOUND)
  assert.deepEqual(await shared(server, publicStatusId), NOT_FOUND)
  assert.deepEqual(await shared(server, `${publicStatusId}/badge.svg`), NOT_FOUND)
  assert.deepEqual(rows(server, 'select public_id from pulse_monitor'), [
    { public_id: other.publicId },
  ])
})

test('a monitor is destroyed once, also by 20 at once while it is pinged', async (t) => {
  const server = await startServer(t)
  const capability = await aMonitor(server)
  await ping(server, capability)
  const [destroyed] = await Promise.all([
    Promise.all(Array.from({ length: 20 }, () => owner(server, capability, 'DELETE'))),
    Promise.all(Array.from({ length: 20 }, () => ping(server, capability))),
  ])
  assert.equal(destroyed.filter(({ status }) => status === 204).length, 1)
  assert.equal(destroyed.filter(({ text }) => text === NOT_FOUND.text).length, 19)
  assert.deepEqual(await ping(server, capability), NOT_FOUND)
})

test('an expired monitor is shown for a day, and then it is gone', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const server = await startServer(t)
  const capability = await aMonitor(server)
  const ended = await aMonitor(server)
  const longer = await aMonitor(server, 'standard')
  const monitor = server.mayfly.pulse(capability)
  await monitor.ping()
  const { publicStatusId } = await monitor.update({ name: 'job', publicStatusEnabled: true })

  server.clock.advance(DAY)
  assert.deepEqual(await ping(server, capability), NOT_FOUND)
  assert.equal((await monitor.status()).state, 'expired')
  assert.deepEqual(await patch(server, capability, '{}'), NOT_FOUND)
  assert.deepEqual(await patch(server, capability, 'no JSON', 'text/plain'), NOT_FOUND)
  assert.equal((await server.mayfly.pulsePublicStatus(publicStatusId)).state, 'expired')
  assert.match((await shared(server, `${publicStatusId}/badge.svg`)).text, />expired</)
  assert.deepEqual(await owner(server, ended, 'DELETE'), DONE)
  assert.deepEqual(await owner(server, ended, 'GET'), NOT_FOUND)

  t.mock.timers.tick(PURGE)
  server.clock.advance(DAY - MINUTE)
  await server.restart()
  assert.equal((await server.mayfly.pulse(capability).status()).state, 'expired')
  server.clock.advance(MINUTE)
  assert.deepEqual(await owner(server, capability, 'GET'), NOT_FOUND)
  assert.deepEqual(await owner(server, capability, 'DELETE'), NOT_FOUND)
  assert.deepEqual(await shared(server, publicStatusId), NOT_FOUND)

  t.mock.timers.tick(PURGE)
  await server.restart()
  assert.deepEqual(rows(server, 'select public_id from pulse_monitor'), [
    { public_id: longer.publicId },
  ])
  assert.ok(
    server.logged.some((line) =>
      line.includes('"event":"product.purged","product":"pulse","gone":1'),
    ),
  )
})

test('nothing that was destroyed or purged stays in the files', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const server = await startServer(t)
  const destroyed = await aMonitor(server)
  const expired = await aMonitor(server)
  for (const [capability, name] of [
    [destroyed, 'marker-of-the-destroyed'],
    [expired, 'marker-of-the-expired'],
  ] as const) {
    await server.mayfly.pulse(capability).update({ name, description: name })
  }
  assert.deepEqual(await owner(server, destroyed, 'DELETE'), DONE)
  server.clock.advance(2 * DAY)
  t.mock.timers.tick(PURGE)
  // Stopping truncates the log, as the store does by itself within a minute.
  await server.restart()
  await assertNowhere(server, ['marker-of-the-destroyed', 'marker-of-the-expired'])
})

// What is shared

test('the shared status has four fields and tells nothing of the monitor', async (t) => {
  const server = await startServer(t)
  const capability = await aMonitor(server)
  const monitor = server.mayfly.pulse(capability)
  const { publicStatusId } = await monitor.status()
  assert.deepEqual(await shared(server, publicStatusId), NOT_FOUND, 'off at first')
  await monitor.update({ publicStatusEnabled: true, name: 'job', description: 'runs at night' })
  const response = await fetch(`${server.url}/api/pulse/public/${publicStatusId}`)
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('access-control-allow-origin'), '*')
  assert.equal(
    await response.text(),
    '{"name":"job","description":"runs at night","state":"waiting","lastPingAt":null}',
  )
  await monitor.ping()
  const { lastPingAt } = await monitor.status()
  assert.deepEqual(await server.mayfly.pulsePublicStatus(publicStatusId), {
    name: 'job',
    description: 'runs at night',
    state: 'operational',
    lastPingAt,
  })
  await monitor.update({ publicStatusEnabled: false })
  assert.deepEqual(await shared(server, publicStatusId), NOT_FOUND)
  assert.deepEqual(await shared(server, `${publicStatusId}/badge.svg`), NOT_FOUND)
})

test('the id that is shared opens nothing else, and no other id opens what is shared', async (t) => {
  const server = await startServer(t)
  const capability = await aMonitor(server)
  const { publicId, ownerToken } = capability
  const { publicStatusId } = await server.mayfly
    .pulse(capability)
    .update({ publicStatusEnabled: true })
  assert.ok(!JSON.stringify(capability).includes(publicStatusId.slice('pulse_status_'.length)))
  for (const id of [
    publicId,
    publicStatusId.replace('pulse_status_', 'pulse_'),
    publicId.replace('pulse_', 'pulse_status_'),
    `${publicStatusId}x`,
    publicStatusId.slice(0, -1),
    `pulse_status_${'-'.repeat(22)}`,
    'x',
    "' or 1=1 --",
    'y'.repeat(500),
  ]) {
    assert.deepEqual(await shared(server, encodeURIComponent(id)), NOT_FOUND, id)
    assert.deepEqual(await shared(server, `${encodeURIComponent(id)}/badge.svg`), NOT_FOUND, id)
  }
  for (const method of ['GET', 'DELETE']) {
    const answer = await owner(server, { publicId: publicStatusId, ownerToken }, method)
    assert.deepEqual(answer, NOT_FOUND, method)
  }
})

test('the badge is a picture that runs nothing, for a short time', async (t) => {
  const server = await startServer(t)
  const monitor = server.mayfly.pulse(await aMonitor(server))
  const name = `<script>alert("1")</script>&'\u0000`
  const description = 'not on the badge'
  const { publicStatusId } = await monitor.update({ name, description, publicStatusEnabled: true })
  const response = await fetch(`${server.url}/api/pulse/public/${publicStatusId}/badge.svg`)
  assert.equal(response.status, 200)
  const { headers } = response
  assert.equal(headers.get('content-type'), 'image/svg+xml; charset=utf-8')
  assert.equal(headers.get('cache-control'), 'public, max-age=30')
  assert.equal(
    headers.get('content-security-policy'),
    "default-src 'none'; style-src 'unsafe-inline'; sandbox",
  )
  assert.equal(headers.get('x-content-type-options'), 'nosniff')
  const document = await response.text()
  assert.match(document, /^<svg /)
  assert.match(document, />&lt;script&gt;alert\(&quot;1&quot;\)&lt;\/script&gt;&amp;&#39;</)
  assert.match(document, />waiting</)
  assert.ok(!document.includes('<script') && !document.includes(description))
  const gone = await fetch(`${server.url}/api/pulse/public/pulse_status_x/badge.svg`)
  assert.equal(gone.headers.get('content-type'), 'application/json; charset=utf-8')
  assert.equal(gone.headers.get('cache-control'), 'no-store')
  assert.deepEqual(await answerOf(gone), NOT_FOUND)
})

test('the description of the API calls the badge a picture', async (t) => {
  const { url } = await startServer(t)
  const { paths } = await (await fetch(`${url}/openapi.json`)).json()
  const { responses } = paths['/api/pulse/public/{publicStatusId}/badge.svg'].get
  assert.deepEqual(Object.keys(responses['200'].content), ['image/svg+xml'])
})

// Limits

test('a monitor takes five pings at once, and a refused one costs no heartbeat and is no use', async (t) => {
  const server = await startServer(t, { MAYFLY_RATE_LIMITS: 'on' })
  const key = randomUUID()
  const capability = await aMonitor(server, 'spark', key)
  const other = await aMonitor(server)
  for (let i = 0; i < 6; i++) {
    assert.deepEqual(await ping(server, { ...capability, pingToken: other.pingToken }), NOT_FOUND)
  }
  assert.equal((await purchase(server, '{"planId":"spark"}', key)).status, 200)
  for (let i = 0; i < 5; i++) assert.deepEqual(await ping(server, capability), DONE)
  const limited = await fetch(`${server.url}/p/${capability.publicId}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${capability.pingToken}` },
  })
  assert.match(limited.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
  assert.deepEqual(await answerOf(limited), LIMITED)
  assert.deepEqual(await ping(server, other), DONE, 'every monitor has its own')
  const { acceptedHeartbeatCount } = await server.mayfly.pulse(capability).status()
  assert.equal(acceptedHeartbeatCount, 5)
})

test('guessing tokens is limited by client, and the right ones are never refused for it', async (t) => {
  const server = await startServer(t, { MAYFLY_RATE_LIMITS: 'on' })
  const capability = await aMonitor(server)
  const guess = () => owner(server, { ...capability, ownerToken: aToken('pulse_owner') }, 'GET')
  for (let i = 0; i < 20; i++) assert.deepEqual(await guess(), NOT_FOUND)
  assert.deepEqual(await guess(), LIMITED)
  assert.deepEqual(await ping(server, { ...capability, pingToken: aToken('pulse_ping') }), LIMITED)
  assert.deepEqual(await ping(server, capability), DONE)
  assert.equal((await owner(server, capability, 'GET')).status, 200)
})

test('reading what is shared is limited by client, badge and all', async (t) => {
  const server = await startServer(t, { MAYFLY_RATE_LIMITS: 'on' })
  const { publicStatusId } = await server.mayfly
    .pulse(await aMonitor(server))
    .update({ publicStatusEnabled: true })
  for (let i = 0; i < 30; i++) {
    assert.equal((await shared(server, publicStatusId)).status, 200)
    assert.equal((await shared(server, `${publicStatusId}/badge.svg`)).status, 200)
  }
  assert.deepEqual(await shared(server, publicStatusId), LIMITED)
  assert.deepEqual(await shared(server, `${publicStatusId}/badge.svg`), LIMITED)
})

// The SDK

test('a job that holds the ping token alone can ping, and nothing else', async (t) => {
  const server = await startServer(t)
  const { publicId, pingToken } = await aMonitor(server)
  const job = server.mayfly.pulse({ publicId, pingToken })
  await job.ping()
  const refused = { name: 'MayflyError', phrase: 'unauthorized', status: 401 }
  await assert.rejects(job.status(), refused)
  await assert.rejects(job.update({}), refused)
  await assert.rejects(job.destroy(), refused)
  await assert.rejects(server.mayfly.pulse({ publicId }).ping(), { phrase: 'not found' })
  await assert.rejects(server.mayfly.pulsePublicStatus(publicId), { phrase: 'not found' })
})

type Answer = { status: number; text: string }
type Owner = Pick<PulseCapability, 'publicId' | 'ownerToken'>
type Job = Pick<PulseCapability, 'publicId' | 'pingToken'>

/** Bought the quickest way; no token of it is used yet. */
function aMonitor(
  { mayfly, pay }: TestServer,
  planId: 'spark' | 'standard' | 'long' = 'spark',
  idempotencyKey: string = randomUUID(),
): Promise<PulseCapability> {
  return mayfly.buyPulse({ planId, idempotencyKey, onInvoice: ({ bolt11 }) => pay(bolt11) })
}

/** A server whose plans of PULSE are changed. */
async function aServerWith(
  t: After,
  pulse: Record<string, Record<string, unknown>>,
): Promise<TestServer> {
  const file = join(await temporaryFolder(t), 'catalog.json')
  await writeFile(file, JSON.stringify({ pulse }))
  return startServer(t, { MAYFLY_CATALOG: file })
}

async function purchase(
  { url }: TestServer,
  body: string,
  key: string = randomUUID(),
): Promise<Answer> {
  return answerOf(
    await fetch(`${url}/api/payments/pulse`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
      body,
    }),
  )
}

async function ping(
  { url }: TestServer,
  { publicId, pingToken }: Job,
  request: { token?: string; body?: string; headers?: Record<string, string> } = {},
): Promise<Answer> {
  return answerOf(
    await fetch(`${url}/p/${publicId}`, {
      method: 'POST',
      headers: { ...request.headers, authorization: `Bearer ${request.token ?? pingToken}` },
      ...(request.body === undefined ? {} : { body: request.body }),
    }),
  )
}

/** The head of a ping whose body is framed in this way. */
function pingHead({ publicId, pingToken }: Job, framing: string): string {
  return `POST /p/${publicId} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${pingToken}\r\n${framing}\r\n\r\n`
}

async function owner(
  { url }: TestServer,
  { publicId, ownerToken }: Owner,
  method: string,
  { body, type = 'application/json' }: { body?: string | undefined; type?: string | null } = {},
): Promise<Answer> {
  return answerOf(
    await fetch(`${url}/api/pulse/${publicId}`, {
      method,
      headers: {
        authorization: `Bearer ${ownerToken}`,
        ...(body === undefined || type === null ? {} : { 'content-type': type }),
      },
      ...(body === undefined ? {} : { body: new TextEncoder().encode(body) }),
    }),
  )
}

function patch(
  server: TestServer,
  capability: Owner,
  body: string,
  type: string | null = 'application/json',
): Promise<Answer> {
  return owner(server, capability, 'PATCH', { body, type })
}

async function shared({ url }: TestServer, rest: string): Promise<Answer> {
  return answerOf(await fetch(`${url}/api/pulse/public/${rest}`))
}

async function answerOf(response: Response): Promise<Answer> {
  return { status: response.status, text: await response.text() }
}

type Exchanged = { status: number; statuses: number[]; headers: Headers }

/** Sends bytes as they are and reads until the server closes the connection. */
function exchange(url: string, ...parts: string[]): Promise<Exchanged> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(Number(port), hostname, () => socket.write(parts.join('')))
    socket.setEncoding('latin1')
    socket.on('data', (part) => {
      answer += part
    })
    socket.on('error', reject)
    socket.on('close', () => {
      const statuses = [...answer.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, code]) => Number(code))
      const [, ...lines] = answer.slice(0, answer.indexOf('\r\n\r\n')).split('\r\n')
      const headers = new Headers(
        lines.map((line): [string, string] => {
          const colon = line.indexOf(':')
          return [line.slice(0, colon), line.slice(colon + 1).trim()]
        }),
      )
      resolve({ status: statuses[0] ?? 0, statuses, headers })
    })
  })
}

function rows({ file }: TestServer, query: string): Record<string, unknown>[] {
  const store = new DatabaseSync(file, { readOnly: true })
  try {
    return store
      .prepare(query)
      .all()
      .map((row) => ({ ...row }))
  } finally {
    store.close()
  }
}

/** In none of the files of the store, and in no line of the log. */
async function assertNowhere({ file, logged }: TestServer, texts: string[]): Promise<void> {
  for (const part of [file, `${file}-wal`]) {
    const bytes = await readFile(part)
    for (const text of texts) assert.ok(!bytes.includes(text), `${part} holds ${text}`)
  }
  for (const text of texts) assert.ok(!logged.some((line) => line.includes(text)), text)
}

/** A well-formed token that nobody was given. */
function aToken(kind: TokenKind): string {
  return tokenOf(kind, crypto.getRandomValues(new Uint8Array(32)))
}

/** The token with one digit changed, so that only its checksum gives it away. */
function typo(token: string): string {
  const digit = token.at(-20) === 'a' ? 'b' : 'a'
  return `${token.slice(0, -20)}${digit}${token.slice(-19)}`
}
