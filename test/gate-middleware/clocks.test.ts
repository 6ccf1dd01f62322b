/** The clock of an API, of the service, and of whatever lies between. Receipts are dated by the service's. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createGate, fileStore } from '../../src/gate-middleware/middleware.ts'
import { temporaryFolder } from '../support/folder.ts'
import { aShop, aVisit, proofOf } from './shop.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

type Shop = Awaited<ReturnType<typeof aShop>>
type Options = Partial<Parameters<typeof createGate>[0]>

/** An API of the shop whose clock is so much ahead of the service's. */
function anApi(shop: Shop, aheadMs: number, options: Options = {}) {
  const told: string[] = []
  const gate = createGate({
    ...shop.options,
    clock: { now: () => shop.clock.now() + aheadMs, monotonic: shop.clock.monotonic },
    onProblem: (sentence) => void told.push(sentence),
    ...options,
  })
  const visit = (headers: Record<string, string> = {}) =>
    gate.fetch('render', shop.handler)(aVisit(headers))
  return { visit, told }
}

for (const [aheadMs, by] of [
  [6 * MINUTE, '36\\d s ahead of'],
  [-6 * MINUTE, '3[56]\\d s behind'],
  [70 * SECOND, '7\\d s ahead of'],
] as const) {
  test(`an API whose clock is ${aheadMs / SECOND} seconds ahead asks nobody to pay, and says once what to mend`, async (t) => {
    const shop = await aShop(t)
    const { visit, told } = anApi(shop, aheadMs)
    for (const headers of [{}, { 'x-payment-protocol': 'payment' }, {}]) {
      const answer = await visit(headers as Record<string, string>)
      assert.equal(answer.status, 503)
      assert.equal(answer.headers.get('www-authenticate'), null)
      assert.deepEqual(await answer.json(), { error: 'payment unavailable' })
    }
    assert.equal(told.length, 1)
    assert.match(told[0] ?? '', new RegExp(by))
    shop.clock.advance(MINUTE)
    await visit()
    assert.equal(told.length, 2)
  })
}

test('an API whose clock is half a minute off asks for payment as ever', async (t) => {
  const shop = await aShop(t)
  for (const aheadMs of [-30 * SECOND, 30 * SECOND]) {
    const { visit, told } = anApi(shop, aheadMs)
    assert.equal((await visit()).status, 402)
    assert.deepEqual(told, [])
  }
})

for (const aheadMs of [-24 * HOUR, -6 * MINUTE, 6 * MINUTE, 24 * HOUR]) {
  test(`who has paid is let in once, though the clock of the API is ${aheadMs / MINUTE} minutes ahead by then`, async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const proof = proofOf(quote, await shop.pay(quote.bolt11))
    const receipt = await shop.receipt()
    const { visit } = anApi(shop, aheadMs)
    assert.equal((await visit(proof)).status, 200)
    assert.equal((await visit(proof)).status, 409)
    assert.equal((await visit({ 'gate-receipt': receipt })).status, 200)
    assert.equal((await visit({ 'gate-receipt': receipt })).status, 409)
    assert.equal(shop.served.length, 2)
  })
}

test('a receipt that is over by the service is over, however far behind the clock of the API is', async (t) => {
  const shop = await aShop(t)
  const receipt = await shop.receipt()
  shop.clock.advance(6 * MINUTE)
  const { visit } = anApi(shop, -HOUR)
  assert.equal((await visit({ 'gate-receipt': receipt })).status, 403)
  assert.equal(shop.served.length, 0)
})

test("a store's word counts only where the clocks agree, because it tells the time by that of the API", async (t) => {
  const shop = await aShop(t)
  const store = fileStore(await temporaryFolder(t), shop.clock.now)
  await store.since?.()
  shop.clock.advance(2 * MINUTE)
  const receipt = await shop.receipt()
  shop.clock.advance(HOUR)
  const { visit } = anApi(shop, -2 * MINUTE, { store })
  assert.equal((await visit({ 'gate-receipt': receipt })).status, 403)
  assert.equal((await anApi(shop, 0, { store }).visit({ 'gate-receipt': receipt })).status, 200)
})

test('an answer that a cache has kept tells the time with its age', async (t) => {
  const shop = await aShop(t)
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const answer = await shop.options.fetch(input, init)
    const headers = new Headers(answer.headers)
    headers.set('date', new Date(shop.clock.now() - 4 * MINUTE).toUTCString())
    headers.set('age', '240')
    return new Response(await answer.arrayBuffer(), { status: answer.status, headers })
  }
  assert.equal((await anApi(shop, 0, { fetch }).visit()).status, 402)
})

test('without a date in its answers the clock of the API is all there is', async (t) => {
  const shop = await aShop(t)
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const answer = await shop.options.fetch(input, init)
    const headers = new Headers(answer.headers)
    headers.delete('date')
    return new Response(await answer.arrayBuffer(), { status: answer.status, headers })
  }
  const { visit } = anApi(shop, 0, { fetch })
  const quote = await (await visit()).json()
  const proof = proofOf(quote, await shop.pay(quote.bolt11))
  assert.equal((await visit(proof)).status, 200)
})
