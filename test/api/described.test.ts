import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { ALL_LIMITS } from '../../src/service/products.ts'
import { anInbox } from '../support/catch.ts'
import { register } from '../support/gate.ts'
import { limited } from '../support/limits.ts'
import { openapi } from '../support/openapi.ts'
import {
  l402Authorization,
  l402Challenges,
  paymentAuthorization,
  paymentChallengeIn,
} from '../support/payer.ts'
import { aMonitor } from '../support/pulse.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { aWhisper } from '../support/whisper.ts'
import { type Ask, type Call, createConformance, type Reply } from './conformance.ts'

const UNKNOWN_WHISPER = { publicId: 'whisper_0000000000000000000000' }
const DAY = 24 * 60 * 60 * 1000
const UNKNOWN = { publicId: 'catch_0000000000000000000000', eventId: randomUUID() }
const PREIMAGE = '00'.repeat(32)

/** Statuses that need a fault, by what is declared. `test/faults/` and the named tests have the faults. */
const NEED_A_FAULT: [pattern: RegExp, reason: string][] = [
  [/ 500$/, 'a bug of the service; test/api/http-broken-off.test.ts'],
  [
    / 503$/,
    'a store or a node that is away; test/http/readiness.test.ts, test/api/purchase.test.ts',
  ],
  [/ 429$/, 'a limit that is used up; test/api/every-route.test.ts'],
  [/ 408$/, 'a body that stops half-way; test/api/catch-slow-bodies.test.ts'],
]

test('every operation answers each of its statuses as the description says, and says nothing else', async (t) => {
  const rates = ALL_LIMITS.map(({ name }) => [name, { perMinute: 0.01, burst: 100_000 }])
  const server = await limited(t, Object.fromEntries(rates), { MAYFLY_GATE: 'on' })
  const check = createConformance(await openapi(server, '/openapi-all.json'))
  await drive(server, check.on(server))
  const blocked = await startServer(t, { MAYFLY_BLOCKED_NETWORKS: '127.0.0.0/8,::1' })
  await driveBlocked(check.on(blocked))
  const local = await startServer(t, { MAYFLY_SIMULATOR: 'local' })
  await driveLocal(local, check.on(local))
  const isExpected = (line: string) => NEED_A_FAULT.some(([pattern]) => pattern.test(line))
  assert.deepEqual(
    check.unanswered().filter((line) => !isExpected(line)),
    [],
  )
})

const BY_URL = [
  'buyCatch',
  'headBuyCatch',
  'postBuyCatch',
  'buyPulse',
  'headBuyPulse',
  'postBuyPulse',
  'buyWhisper',
]
  .map((name) => `${name}ByUrl`)
  .flatMap((name) => [name, `${name}WithL402`])

const BODIES = {
  Catch: { planId: 'spark' },
  Pulse: { planId: 'spark' },
  Whisper: Buffer.alloc(64, 1),
}

/** Each operation in each of its statuses, except for 429 and for faults. */
async function drive(server: TestServer, ask: Call): Promise<void> {
  for (const id of ['getHealth', 'headHealth', 'getReadiness', 'headReadiness', 'getCatalog']) {
    await ask(id, 200)
  }
  for (const [product, body] of Object.entries(BODIES)) {
    await driveBuying(server, ask, { id: `buy${product}`, body })
  }
  for (const product of ['Catch', 'Pulse'] as const) await driveExtension(server, ask, product)
  for (const id of BY_URL) await driveOneUrl(server, ask, id)
  await drivePoll(ask)
  await driveRecovery(server, ask)
  await driveInbox(server, ask)
  await driveWhisper(server, ask)
  await driveMonitor(server, ask)
  await driveGate(server, ask)
}

/** From a network that the operator does not serve. */
async function driveBlocked(ask: Call): Promise<void> {
  for (const [product, body] of Object.entries(BODIES)) {
    const id = `buy${product}`
    await ask(id, 403, { headers: aPurchase(id), body })
  }
  for (const id of SENDS) await ask(id, 403, { params: UNKNOWN })
}

/** A local simulator refuses who comes through a proxy. */
async function driveLocal(server: TestServer, ask: Call): Promise<void> {
  const proxied = { 'x-forwarded-for': '203.0.113.1' }
  for (const [id, { publicId, ownerToken }] of [
    ['extendCatch', await anInbox(server)],
    ['extendPulse', await aMonitor(server)],
  ] as const) {
    const headers = aPurchase(id, { ...proxied, 'x-owner-token': ownerToken })
    await ask(id, 403, { params: { publicId }, headers, body: { planId: 'spark' } })
  }
  await ask('payWithSimulator', 403, { headers: proxied, body: { bolt11: 'lnbcrt1' } })
}

const aPurchase = (id: string, headers: Record<string, string> = {}) => ({
  'idempotency-key': randomUUID(),
  ...(id === 'buyWhisper' ? { 'x-whisper-plan': 'spark' } : {}),
  ...headers,
})

async function driveBuying(
  server: TestServer,
  ask: Call,
  { id, body }: { id: string; body: Ask['body'] },
) {
  const send = (status: number, headers: Record<string, string>, some = body) =>
    ask(id, status, { headers, ...(some === undefined ? {} : { body: some }) })
  await send(400, { 'x-whisper-plan': 'spark' })
  await send(402, aPurchase(id))
  const key = { 'idempotency-key': randomUUID() }
  const bought = await send(402, { ...aPurchase(id), ...key, 'x-payment-protocol': 'l402' })
  const [macaroon] = l402Challenges(challengesOf(bought))
  assert.ok(macaroon)
  const preimage = await server.pay((bought.body as { bolt11: string }).bolt11)
  const credential = (some: string) =>
    l402Authorization({ macaroon: macaroon.macaroon, preimage: some })
  const paid = { ...aPurchase(id), ...key }
  await send(401, { ...paid, authorization: credential(PREIMAGE) })
  await send(200, { ...paid, authorization: credential(preimage) })
  const other = { 'idempotency-key': randomUUID(), 'x-payment-protocol': 'payment' }
  const shown = await send(402, { ...aPurchase(id), ...other })
  const proof = await server.pay((shown.body as { bolt11: string }).bolt11)
  const authorization = paymentAuthorization({
    challenge: paymentChallengeIn(shown.headers.get('www-authenticate')),
    payload: { preimage: proof },
  })
  const delivered = await send(200, { ...aPurchase(id), ...other, authorization })
  assert.ok(delivered.headers.has('payment-receipt'))
  const expiring = aPurchase(id)
  await send(402, expiring)
  server.clock.advance(DAY)
  await send(404, expiring)
}

async function driveExtension(server: TestServer, ask: Call, product: 'Catch' | 'Pulse') {
  const id = `extend${product}`
  const held = await (product === 'Catch' ? anInbox(server) : aMonitor(server))
  const params = { publicId: held.publicId }
  const send = (status: number, headers: Record<string, string>) =>
    ask(id, status, { params, headers, body: { planId: 'spark' } })
  const owner = { 'x-owner-token': held.ownerToken }
  await send(400, owner)
  await send(402, aPurchase(id, owner))
  await send(401, aPurchase(id))
  await ask(id, 404, { headers: aPurchase(id, owner), params: UNKNOWN, body: { planId: 'spark' } })
  const key = aPurchase(id)
  const asked = await send(402, { ...key, ...owner, 'x-payment-protocol': 'payment' })
  const { orderId } = asked.body as { orderId: string }
  const poll = { params: { orderId }, headers: key }
  await ask('pollExtension', 402, poll)
  await ask('pollExtension', 400, { ...poll, headers: { 'idempotency-key': 'short' } })
  await ask('pollExtension', 404, { params: { orderId: 'order_unknown' } })
  const preimage = await server.pay((asked.body as { bolt11: string }).bolt11)
  const authorization = paymentAuthorization({
    challenge: paymentChallengeIn(asked.headers.get('www-authenticate')),
    payload: { preimage },
  })
  await send(200, { ...key, authorization })
  await ask('pollExtension', 200, poll)
  server.clock.advance(2 * DAY)
  await send(409, aPurchase(id, owner))
}

const challengesOf = ({ headers }: Reply) => [headers.get('www-authenticate') ?? '']

async function driveOneUrl(server: TestServer, ask: Call, id: string) {
  const bytes = id.includes('Whisper') ? { body: BODIES.Whisper } : {}
  const params = { planId: 'standard' }
  const buying = { params, ...bytes }
  await ask(id, 400, { ...bytes, params: { planId: 'mega' } })
  await ask(id, 403, { ...buying, headers: { 'sec-purpose': 'prefetch' } })
  const protocol = { 'x-payment-protocol': 'l402' }
  const shown = await ask(id, 402, { ...buying, headers: protocol })
  // HEAD has no body: whatever it takes to pay is in the field.
  const [{ macaroon, invoice: bolt11 } = { macaroon: '', invoice: '' }] = l402Challenges(
    challengesOf(shown),
  )
  const preimage = await server.pay(bolt11)
  const l402 = (some: string) => l402Authorization({ macaroon, preimage: some })
  await ask(id, 401, { ...buying, headers: { authorization: l402(PREIMAGE) } })
  await ask(id, 200, { ...buying, headers: { authorization: l402(preimage) } })
  if (id.startsWith('postBuy')) await ask(id, 400, { params, body: { some: 'thing' } })
  const authorization = await onTheOther(server, ask, { id, buying })
  await ask(id, 200, { ...buying, headers: { authorization } })
  // Sealed by its age, while what was bought still lives.
  server.clock.advance(2 * DAY)
  await ask(id, 404, { ...buying, headers: { authorization } })
}

/** A Payment credential, which the twin takes, too. Delivered already, so that HEAD's order can be sealed by its age. */
async function onTheOther(
  server: TestServer,
  ask: Call,
  { id, buying }: { id: string; buying: { params: { planId: string }; body?: Buffer } },
): Promise<string> {
  const both = await ask(id.replace('WithL402', ''), 402, buying)
  const [{ invoice } = { invoice: '' }] = l402Challenges(challengesOf(both))
  const authorization = paymentAuthorization({
    challenge: paymentChallengeIn(both.headers.get('www-authenticate')),
    payload: { preimage: await server.pay(invoice) },
  })
  const get = id.replace(/^(head|post)Buy/, 'buy')
  await ask(get, 200, { ...buying, headers: { authorization } })
  return authorization
}

async function drivePoll(ask: Call) {
  const { orderId, bolt11 } = await anOrder(ask)
  await ask('pollOrder', 400, { params: { orderId }, headers: { 'idempotency-key': 'x' } })
  await ask('pollOrder', 402, { params: { orderId } })
  await ask('pollOrder', 404, { params: { orderId: 'order_0' } })
  await ask('payWithSimulator', 200, { body: { bolt11 } })
  await ask('payWithSimulator', 400, { body: { bolt11: 1 } })
  await ask('payWithSimulator', 404, { body: { bolt11: 'lnbcrt1' } })
  await ask('pollOrder', 200, { params: { orderId } })
}

async function driveRecovery(server: TestServer, ask: Call) {
  const { bolt11 } = await anOrder(ask)
  const preimage = await server.pay(bolt11)
  await ask('recoverPurchase', 200, { body: { bolt11, preimage } })
  await ask('recoverPurchase', 400, { body: { bolt11 } })
  await ask('recoverPurchase', 404, { body: { bolt11, preimage: PREIMAGE } })
}

async function anOrder(ask: Call): Promise<{ orderId: string; bolt11: string }> {
  const { body } = await ask('buyCatch', 402, {
    headers: aPurchase('buyCatch'),
    body: { planId: 'spark' },
  })
  return body as { orderId: string; bolt11: string }
}

async function driveInbox(server: TestServer, ask: Call) {
  const inbox = await anInbox(server)
  const params = { publicId: inbox.publicId }
  for (const id of SENDS) {
    await ask(id, 204, { params, headers: { authorization: `Bearer ${inbox.ingestToken}` } })
    await ask(id, 401, { params: UNKNOWN })
    await ask(id, 400, { params, headers: manyHeaders() })
  }
  await ask('sendToInbox', 204, { params, body: { some: 'json' } })
  const headers = { authorization: `Bearer ${inbox.ownerToken}` }
  const { body } = await ask('listEvents', 200, { params, headers, query: { limit: '50' } })
  await ask('listEvents', 400, { params, headers, query: { limit: '0' } })
  const [{ id: eventId = '' } = {}] = (body as { events: { id?: string }[] }).events
  const event = { ...params, eventId }
  await ask('streamEvents', 400, { params, headers: { ...headers, 'last-event-id': 'x' } })
  const wrong = { authorization: `Bearer ${inbox.ingestToken}` }
  for (const id of ['getInbox', 'getRefusals', 'listEvents', 'streamEvents']) {
    await ask(id, 200, { params, headers })
    await ask(id, 401, { params, headers: wrong })
    // Listing does not tell an unknown inbox from a wrong token.
    await ask(id, id === 'listEvents' ? 401 : 404, { params: UNKNOWN, headers })
  }
  for (const id of ['getEvent', 'getEventBody', 'deleteEvent']) {
    await ask(id, id === 'deleteEvent' ? 204 : 200, { params: event, headers })
    await ask(id, 401, { params: event })
    await ask(id, 404, { params: { ...event, eventId: UNKNOWN.eventId }, headers })
  }
  await driveRotation(ask, 'rotateInboxToken', { params, headers })
  await driveResponse(ask, { params, headers })
  await ask('destroyInbox', 401, { params })
  await ask('destroyInbox', 204, { params, headers })
  await ask('destroyInbox', 404, { params, headers })
}

async function driveResponse(
  ask: Call,
  { params, headers }: Required<Pick<Ask, 'params' | 'headers'>>,
) {
  const chosen = { status: 200, contentType: 'text/plain', body: 'ok' }
  await ask('setResponse', 200, { params, headers, body: chosen })
  await ask('getResponse', 200, { params, headers })
  const methods = ['Put', 'Patch', 'Delete'].map((method) => `send${method}ToInbox`)
  for (const id of ['sendToInbox', ...methods]) await ask(id, 200, { params })
  await ask('setResponse', 200, { params, headers, body: { echo: { query: 'challenge' } } })
  await ask('sendGetToInbox', 200, { params, query: { challenge: 'abc' } })
  await ask('setResponse', 400, { params, headers, body: { ...chosen, status: 302 } })
  await ask('deleteResponse', 204, { params, headers })
  for (const id of ['getResponse', 'setResponse', 'deleteResponse']) {
    const body = id === 'setResponse' ? { body: chosen } : {}
    await ask(id, 401, { params, ...body })
    await ask(id, 404, { params: UNKNOWN, headers, ...body })
  }
}

const SENDS = ['Get', 'Head', 'Put', 'Patch', 'Delete', 'Options']
  .map((method) => `send${method}ToInbox`)
  .concat('sendToInbox')

/** More header lines than an inbox stores. */
const manyHeaders = () =>
  Object.fromEntries(Array.from({ length: 260 }, (_, i) => [`x-some-${i}`, 'a']))

async function driveWhisper(server: TestServer, ask: Call) {
  const revealAt = new Date(server.now() + DAY / 2).toISOString()
  const { body } = await ask('buyWhisper', 402, {
    headers: aPurchase('buyWhisper', { 'x-whisper-reveal-at': revealAt }),
    body: bytes(64),
  })
  const { orderId, bolt11 } = body as { orderId: string; bolt11: string }
  await server.pay(bolt11)
  const { publicId = '', readToken } = await resourceOf(ask, orderId)
  const params = { publicId }
  const headers = { authorization: `Bearer ${readToken}` }
  await ask('readWhisper', 425, { params, headers })
  server.clock.advance(DAY / 2 + 1_000)
  await ask('readWhisper', 400, { params, headers: { ...headers, 'x-whisper-max-bytes': '63' } })
  await ask('readWhisper', 200, { params, headers })
  await ask('readWhisper', 404, { params })
  await driveReceipt(server, ask)
}

async function driveReceipt(server: TestServer, ask: Call): Promise<void> {
  const { publicId, receiptToken } = await aWhisper(server, {
    headers: { 'x-whisper-receipt': 'on' },
  })
  const params = { publicId }
  const headers = { authorization: `Bearer ${receiptToken}` }
  const alerts = { ask, own: { params, headers }, foreign: {}, operations: RECEIPT_ALERTS }
  await driveAlerts(await anInbox(server), alerts)
  for (const [id, status] of [
    ['getReceipt', 200],
    ['destroyWhisper', 204],
  ] as const) {
    await ask(id, 401, { params })
    await ask(id, 404, { params: UNKNOWN_WHISPER, headers })
    await ask(id, status, { params, headers })
  }
}

async function resourceOf(ask: Call, orderId: string): Promise<Record<string, string>> {
  const { body } = await ask('pollOrder', 200, { params: { orderId } })
  return (body as { resource: Record<string, string> }).resource
}

async function driveSwitch(ask: Call, owned: Required<Pick<Ask, 'params' | 'headers'>>) {
  for (const [id, status] of [
    ['makeSwitch', 200],
    ['retireSwitch', 204],
    ['retireSwitch', 404],
  ] as const) {
    await ask(id, 401, { params: owned.params })
    await ask(id, status, owned)
  }
  await ask('makeSwitch', 404, { ...owned, params: { publicId: 'pulse_0000000000000000000000' } })
}

async function driveRotation(
  ask: Call,
  operation: string,
  { params, headers }: Required<Pick<Ask, 'params' | 'headers'>>,
) {
  const owner = { ...params, kind: 'owner' }
  await ask(operation, 200, { params: owner, headers })
  await ask(operation, 401, { params: owner })
  await ask(operation, 404, { params: { ...owner, kind: 'other' }, headers })
}

async function driveSchedule(ask: Call, owned: Required<Pick<Ask, 'params' | 'headers'>>) {
  const body = { cron: '0 3 * * 1-5', timeZone: 'Europe/Berlin', graceSeconds: 900 }
  const unknown = { ...owned, params: { publicId: 'pulse_0000000000000000000000' } }
  for (const [id, status] of [
    ['setSchedule', 200],
    ['deleteSchedule', 204],
  ] as const) {
    const sent = id === 'setSchedule' ? { body } : {}
    await ask(id, 401, { params: owned.params, ...sent })
    await ask(id, 404, { ...unknown, ...sent })
    await ask(id, status, { ...owned, ...sent })
  }
  await ask('setSchedule', 400, { ...owned, body: { ...body, cron: '@daily' } })
}

async function driveHistory(ask: Call, owned: Required<Pick<Ask, 'params' | 'headers'>>) {
  await ask('getHistory', 200, { ...owned, query: { limit: '1' } })
  await ask('getHistory', 400, { ...owned, query: { cursor: 'AAAAAAAA' } })
  await ask('getHistory', 401, { params: owned.params })
  await ask('getHistory', 404, { ...owned, params: UNKNOWN })
}

async function driveMonitor(server: TestServer, ask: Call) {
  const monitor = await aMonitor(server)
  const params = { publicId: monitor.publicId }
  const pinging = { authorization: `Bearer ${monitor.pingToken}` }
  await ask('pingMonitor', 204, { params, headers: pinging })
  await ask('pingMonitor', 404, { params })
  for (const signal of ['start', 'fail', '0']) {
    const sent = { params: { ...params, signal }, headers: pinging }
    await ask('reportRun', 204, { ...sent, query: { rid: randomUUID() } })
    await ask('reportRun', 400, { ...sent, query: { rid: 'x' } })
    await ask('reportRun', 404, { params: sent.params })
  }
  const headers = { authorization: `Bearer ${monitor.ownerToken}` }
  const settings = { name: 'backup', publicStatusEnabled: true }
  const { body } = await ask('updateMonitor', 200, { params, headers, body: settings })
  await ask('updateMonitor', 400, { params, headers, body: { graceSeconds: 1 } })
  await ask('getMonitor', 400, { params, headers, query: { wait: '31' } })
  const shared = { publicStatusId: (body as { publicStatusId: string }).publicStatusId }
  const stranger = { publicStatusId: `pulse_status_${'0'.repeat(22)}` }
  for (const id of ['getSharedStatus', 'getBadge']) {
    await ask(id, 200, { params: shared })
    await ask(id, 404, { params: stranger })
  }
  for (const id of ['getMonitor', 'streamMonitor', 'updateMonitor', 'destroyMonitor']) {
    const sent = id === 'updateMonitor' ? { body: settings } : {}
    if (id !== 'destroyMonitor') await ask(id, 200, { params, headers, ...sent })
    await ask(id, 401, { params, headers: pinging, ...sent })
    await ask(id, 404, { params: UNKNOWN, headers, ...sent })
  }
  const alerts = { ask, own: { params, headers }, foreign: pinging, operations: OWNED_ALERTS }
  await driveAlerts(await anInbox(server), alerts)
  await driveSwitch(ask, { params, headers })
  await driveRotation(ask, 'rotateMonitorToken', { params, headers })
  await driveSchedule(ask, { params, headers })
  await driveHistory(ask, { params, headers })
  await ask('destroyMonitor', 204, { params, headers })
}

async function driveAlerts(
  { publicId, ingestToken }: { publicId: string; ingestToken: string },
  {
    ask,
    own,
    foreign,
    operations,
  }: { ask: Call; own: Ask; foreign: Record<string, string>; operations: readonly string[] },
) {
  const [set = ''] = operations
  const body = { destinations: [{ inbox: publicId, ingestToken }] }
  const none = { destinations: [{ url: 'http://hooks.example.com/' }] }
  await ask(set, 400, { ...own, body: none })
  for (const id of operations) {
    const sent = id === set ? { body } : {}
    await ask(id, id.startsWith('delete') ? 204 : 200, { ...own, ...sent })
    await ask(id, 401, { ...own, ...sent, headers: foreign })
    await ask(id, 404, { ...own, ...sent, params: UNKNOWN })
  }
}

async function driveGate(server: TestServer, ask: Call) {
  const shop = await register(server, { credits: 2 })
  await ask('getGateKeys', 200)
  const own = { authorization: `Bearer ${shop.capability}`, 'x-gate-project': shop.projectId }
  const visit = (more: Record<string, string> = {}) => ({
    headers: { ...own, ...VISIT, 'idempotency-key': randomUUID(), ...more },
    body: { size: 2 },
  })
  await ask('createIntent', 400, { headers: own, body: { size: 2 } })
  await ask('createIntent', 401, visit({ authorization: 'Bearer x' }))
  const { body } = await ask('createIntent', 402, visit())
  await ask('createIntent', 402, visit({ 'x-payment-protocol': 'payment' }))
  const { intentId, bolt11 } = body as { intentId: string; bolt11: string }
  const params = { intentId }
  const preimage = await server.pay(bolt11)
  const prove = (status: number, some: string, headers: Record<string, string> = own) =>
    ask('proveIntent', status, { params, headers, body: { preimage: some } })
  await prove(400, 'x')
  await prove(401, preimage, { ...own, authorization: 'Bearer x' })
  await prove(402, PREIMAGE)
  await ask('pollIntent', 401, { params })
  const { body: authorization } = await prove(200, preimage)
  await ask('pollIntent', 200, { params, headers: own })
  const { receiptId } = authorization as { receiptId: string }
  const giveBack = (status: number, some: object, headers: Record<string, string> = own) =>
    ask('giveBackReceipt', status, { params, headers, body: some })
  await giveBack(400, {})
  await giveBack(401, { receiptId }, {})
  await giveBack(409, { receiptId: 'unknown' })
  await giveBack(204, { receiptId })
  const { body: unpaid } = await ask('createIntent', 402, visit())
  const pending = { intentId: (unpaid as { intentId: string }).intentId }
  await ask('pollIntent', 402, { params: pending, headers: own })
  const poor = await register(server, { credits: 0 })
  const its = { authorization: `Bearer ${poor.capability}`, 'x-gate-project': poor.projectId }
  await ask('createIntent', 403, visit(its))
}

const VISIT = { 'x-gate-route': 'render', 'x-gate-method': 'POST', 'x-gate-path': '/render/a' }

const OWNED_ALERTS = ['setAlerts', 'getAlerts', 'deleteAlerts']
const RECEIPT_ALERTS = OWNED_ALERTS.map((id) => id.replace('Alerts', 'ReceiptAlerts'))
const bytes = (length: number): Uint8Array<ArrayBuffer> => new Uint8Array(length).fill(7)
