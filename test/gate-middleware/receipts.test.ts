import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createGate } from '../../src/gate-middleware/middleware.ts'
import { register } from '../support/gate.ts'
import { startServer } from '../support/server.ts'
import { aShop, aVisit, proofOf, URL_OF_CAT, type Visit } from './shop.ts'

test('a receipt lets one of 50 requests at once in', async (t) => {
  const shop = await aShop(t)
  const receipt = await shop.receipt()
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => shop.visit({ 'gate-receipt': receipt })),
  )
  assert.equal(answers.filter(({ status }) => status === 200).length, 1)
  assert.equal(shop.served.length, 1)
})

test('a receipt for anything else lets nobody in, and asks for no second payment', async (t) => {
  const shop = await aShop(t)
  const receipt = await shop.receipt()
  const [head = '', claims = '', signature = ''] = receipt.split('.')
  const forged = Buffer.from(
    JSON.stringify({ ...JSON.parse(Buffer.from(claims, 'base64url').toString()), jti: 'other' }),
  ).toString('base64url')
  const unsigned = Buffer.from('{"alg":"none","typ":"gate-receipt+jwt"}').toString('base64url')
  const rows: { note: string; headers: Record<string, string>; ask?: Visit }[] = [
    { note: 'another path', headers: {}, ask: { url: 'https://api.example.com/render/dog' } },
    { note: 'another query', headers: {}, ask: { url: `${URL_OF_CAT}&x=1` } },
    { note: 'another method', headers: {}, ask: { method: 'PUT' } },
    { note: 'another body', headers: {}, ask: { body: 'the bod' } },
    { note: 'a forged claim', headers: { 'gate-receipt': `${head}.${forged}.${signature}` } },
    { note: 'no signature', headers: { 'gate-receipt': `${unsigned}.${claims}.` } },
    { note: 'half of it', headers: { 'gate-receipt': `${head}.${claims}` } },
    { note: 'nothing', headers: { 'gate-receipt': '..' } },
  ]
  for (const { note, headers, ask } of rows) {
    const answer = await shop.visit({ 'gate-receipt': receipt, ...headers }, ask)
    assert.equal(answer.status, 403, note)
    assert.deepEqual(await answer.json(), { error: 'invalid receipt' })
  }
  const elsewhere = shop.gate.fetch('other', shop.handler)
  const onAnotherRoute = await elsewhere(aVisit({ 'gate-receipt': receipt }))
  assert.equal(onAnotherRoute.status, 403)
  assert.equal(shop.served.length, 0)
  assert.equal((await shop.visit({ 'gate-receipt': receipt })).status, 200)
})

test('a receipt of another project, or of another service, lets nobody in', async (t) => {
  const shop = await aShop(t)
  const receipt = await shop.receipt()
  const elsewhere = await startServer(t, { MAYFLY_GATE: 'on' })
  for (const options of [
    { ...shop.options, ...(await register(shop)) },
    { ...shop.options, fetch, url: elsewhere.url },
  ]) {
    const answer = await createGate(options).fetch(
      'render',
      shop.handler,
    )(aVisit({ 'gate-receipt': receipt }))
    assert.equal(answer.status, 403)
  }
})

test('a receipt is verified while the service is away, by the keys at hand', async (t) => {
  const shop = await aShop(t)
  const [first, second] = [await shop.receipt(), await shop.receipt()]
  assert.equal((await shop.visit({ 'gate-receipt': first })).status, 200)
  await shop.stop()
  assert.equal((await shop.visit({ 'gate-receipt': second })).status, 200)
  const unpaid = await shop.visit()
  assert.equal(unpaid.status, 503)
  assert.equal(unpaid.headers.get('retry-after'), '5')
  assert.equal(unpaid.headers.get('www-authenticate'), null)
})

test('a receipt is verified by a new key after a rotation, and a made-up key costs nothing', async (t) => {
  const environment: Record<string, string> = { MAYFLY_SECRET: '11'.repeat(32) }
  const shop = await aShop(t, environment)
  const { visit, pass } = anApi(shop)
  const before = await shop.receipt()
  assert.equal((await visit({ 'gate-receipt': before })).status, 200)
  environment.MAYFLY_SECRET = `${'22'.repeat(32)},${'11'.repeat(32)}`
  await shop.restart()
  pass(10_000)
  const after = await shop.receipt()
  assert.equal((await visit({ 'gate-receipt': after })).status, 200)

  const head = { alg: 'EdDSA', typ: 'gate-receipt+jwt', kid: 'made-up' }
  const [, claims, signature] = after.split('.')
  const unknown = `${Buffer.from(JSON.stringify(head)).toString('base64url')}.${claims}.${signature}`
  shop.asked.length = 0
  pass(1)
  for (let i = 0; i < 20; i++) {
    assert.equal((await visit({ 'gate-receipt': unknown })).status, 503)
  }
  assert.deepEqual(shop.asked, [])
  pass(10_000)
  assert.equal((await visit({ 'gate-receipt': unknown })).status, 403)
  for (let i = 0; i < 20; i++) await visit({ 'gate-receipt': unknown })
  assert.deepEqual(shop.asked, ['/.well-known/gate-jwks.json'])
})

test('a payment right after a rotation is told to come again, and is let in then', async (t) => {
  const environment: Record<string, string> = { MAYFLY_SECRET: '11'.repeat(32) }
  const shop = await aShop(t, environment)
  const { visit, pass } = anApi(shop)
  assert.equal((await visit({ 'gate-receipt': await shop.receipt() })).status, 200)
  environment.MAYFLY_SECRET = `${'22'.repeat(32)},${'11'.repeat(32)}`
  await shop.restart()
  pass(1_000)
  const quote = await shop.quote()
  const proof = proofOf(quote, await shop.pay(quote.bolt11))
  const early = await visit(proof)
  assert.equal(early.status, 503)
  assert.deepEqual(await early.json(), { error: 'payment unavailable' })
  assert.equal(early.headers.get('retry-after'), '5')
  pass(10_000)
  assert.equal((await visit(proof)).status, 200)
  assert.equal(shop.served.length, 2)
})

/** An API of the shop for which time passes only when the test says so, however long the service takes to restart. */
function anApi(shop: Awaited<ReturnType<typeof aShop>>) {
  let elapsed = 0
  const clock = { now: shop.clock.now, monotonic: () => elapsed }
  const handle = createGate({ ...shop.options, clock }).fetch('render', shop.handler)
  return {
    visit: (headers: Record<string, string>): Promise<Response> => handle(aVisit(headers)),
    pass(ms: number): void {
      elapsed += ms
    },
  }
}
