import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { aShop, aVisit, proofOf } from './shop.ts'

test('a fetch-style handler forgets a visitor once it has answered', async (t) => {
  const shop = await aShop(t)
  const seen: WeakRef<Request>[] = []
  const handler = shop.gate.fetch('render', (request) => {
    seen.push(new WeakRef(request))
    return new Response('a cat')
  })
  const visitAndPay = async (): Promise<void> => {
    const quote = await shop.quote()
    const answer = await handler(aVisit(proofOf(quote, await shop.pay(quote.bolt11))))
    assert.equal(await answer.text(), 'a cat')
  }
  await visitAndPay()
  await visitAndPay()
  // A reference that was just made, or read, is kept until the turn ends.
  await new Promise(setImmediate)
  collectGarbage()
  assert.deepEqual(
    seen.map((request) => request.deref()),
    [undefined, undefined],
  )
})

test('a fetch-style handler learns that its visitor has left', async (t) => {
  const shop = await aShop(t)
  const quote = await shop.quote()
  const leaving = new AbortController()
  const hasLeft: boolean[] = []
  const handler = shop.gate.fetch('render', ({ signal }) => {
    hasLeft.push(signal.aborted)
    leaving.abort()
    hasLeft.push(signal.aborted)
    return new Response('a cat')
  })
  const visit = aVisit(proofOf(quote, await shop.pay(quote.bolt11)))
  await handler(new Request(visit, { signal: leaving.signal }))
  assert.deepEqual(hasLeft, [false, true])
})

function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  setFlagsFromString('--no-expose-gc')
}
