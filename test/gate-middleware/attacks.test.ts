import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { GateQuote } from '../../src/client/index.ts'
import { createGate, type GateOptions, memoryStore } from '../../src/gate-middleware/middleware.ts'
import { until } from '../support/until.ts'
import { anApi, FORMS, type Form, type Handler } from './forms.ts'
import { aShop, proofOf } from './shop.ts'

const MIB = 1024 * 1024

for (const form of FORMS) {
  describe(`one payment, ${form}`, () => {
    test('one payment runs the handler once for ten requests that hang up in the middle of it', async (t) => {
      const work = Promise.withResolvers<void>()
      const { send, proof, seen, runs } = await aPaid(t, { form }, async () => {
        await work.promise
        return { body: 'a cat' }
      })
      for (let i = 0; i < 10; i++) {
        const { hangUp } = send(proof)
        await until('the request to come', async () => seen.arrived === i + 2)
        if (i === 0) await until('the handler to begin', async () => runs.length === 1)
        hangUp()
        await until('it to be over', async () => seen.over === i + 2)
      }
      work.resolve()
      assert.equal((await send(proof).answer).status, 409)
      assert.equal(runs.length, 1)
    })

    test('one payment buys one answer of 24 MiB, whatever part of it was taken', async (t) => {
      const whole = new Uint8Array(24 * MIB)
      const { send, proof, seen, runs } = await aPaid(t, { form }, async () => ({ body: whole }))
      for (let i = 0; i < 6; i++) {
        const { begun, answer, hangUp } = send(proof)
        if (i === 0) await begun
        else assert.equal((await answer).status, 409)
        hangUp()
        if (i === 0) await until('the client to be gone', async () => seen.gone === 1)
      }
      const tail = await send({ ...proof, range: `bytes=${20 * MIB}-` }).answer
      assert.equal(tail.status, 409)
      assert.equal(tail.headers['www-authenticate'], undefined)
      assert.equal(runs.length, 1)
    })

    test('one payment is not spent by a client that left before its run began', async (t) => {
      const { send, proof, seen, runs, shop } = await aPaid(t, { form }, async () => ({
        body: 'a cat',
      }))
      const proven = Promise.withResolvers<void>()
      const { fetch } = shop.options
      shop.options.fetch = async (...asked) => {
        await proven.promise
        return fetch(...asked)
      }
      const { hangUp } = send(proof)
      await until('the request to come', async () => seen.arrived === 2)
      hangUp()
      await until('the client to be gone', async () => seen.gone === 1)
      proven.resolve()
      assert.equal((await send(proof).answer).status, 200)
      assert.equal(runs.length, 1)
    })

    test('one payment is spent by a client that left while its receipt was noted', async (t) => {
      const [asked, noted] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const memory = memoryStore()
      const store: typeof memory = {
        async add(key, ttlMs) {
          asked.resolve()
          await noted.promise
          return memory.add(key, ttlMs)
        },
      }
      const { send, proof, seen, runs } = await aPaid(t, { form, store }, async () => ({
        body: '',
      }))
      const { hangUp } = send(proof)
      await asked.promise
      hangUp()
      await until('the client to be gone', async () => seen.gone === 1)
      noted.resolve()
      await until('the run', async () => runs.length === 1)
      const { status, body } = await send(proof).answer
      assert.deepEqual([status, String(body)], [409, '{"error":"receipt used"}'])
      assert.equal(runs.length, 1)
    })

    test('one payment is not given back by a failure that its client did not stay for', async (t) => {
      const work = Promise.withResolvers<void>()
      const { send, proof, seen, runs, shop } = await aPaid(t, { form }, async () => {
        await work.promise
        throw new Error('too late')
      })
      const { hangUp } = send(proof)
      await until('the handler to begin', async () => runs.length === 1)
      hangUp()
      await until('the client to be gone', async () => seen.gone === 1)
      work.resolve()
      const { status, body } = await send(proof).answer
      assert.deepEqual([status, String(body)], [409, '{"error":"receipt used"}'])
      assert.equal(runs.length, 1)
      const backs = shop.asked.filter((path) => path.endsWith('/give-back'))
      assert.deepEqual(backs, [])
    })

    test('one payment is good for another run when the handler threw, 301 seconds later too', async (t) => {
      const answers: (() => void)[] = [
        () => {
          throw new Error('a bug')
        },
      ]
      const { send, proof, runs, shop } = await aPaid(t, { form }, async () => {
        answers.shift()?.()
        return { body: 'a cat' }
      })
      assert.equal((await send(proof).answer).status, 500)
      await until('the give-back', async () => shop.asked.at(-1)?.endsWith('/give-back') === true)
      shop.clock.advance(301_000)
      const again = await send(proof).answer
      assert.deepEqual([again.status, String(again.body)], [200, 'a cat'])
      assert.equal((await send(proof).answer).status, 409)
      assert.equal(runs.length, 2)
    })

    test('one payment is good for three runs in all, when each of them fails', async (t) => {
      const { send, proof, runs } = await aPaid(t, { form }, async () => ({
        status: 503,
        body: 'no',
      }))
      const statuses: number[] = []
      for (let i = 0; i < 6; i++) statuses.push((await send(proof).answer).status)
      assert.deepEqual(statuses, [503, 503, 503, 409, 409, 409])
      assert.equal(runs.length, 3)
    })

    test('one payment runs nothing twice: a repeat during the run is told when to come again', async (t) => {
      const work = Promise.withResolvers<void>()
      const { send, proof, runs } = await aPaid(t, { form }, async () => {
        await work.promise
        return { body: 'a cat' }
      })
      const first = send(proof)
      await until('the handler to begin', async () => runs.length === 1)
      const { status, headers, body } = await send(proof).answer
      assert.deepEqual([status, String(body)], [409, '{"error":"request in progress"}'])
      assert.match(headers['retry-after'] ?? '', /^[1-9]\d*$/)
      work.resolve()
      assert.equal((await first.answer).status, 200)
      assert.equal((await send(proof).answer).status, 409)
      assert.equal(runs.length, 1)
    })

    test('one payment lets one of five repeats in that come at once after a run that failed', async (t) => {
      const { send, proof, runs } = await aPaid(t, { form }, async () =>
        runs.length > 1 ? { body: 'a cat' } : { status: 500, body: 'failed' },
      )
      assert.equal((await send(proof).answer).status, 500)
      const others = Array.from({ length: 5 }, () => send(proof))
      const statuses = await Promise.all(others.map(async ({ answer }) => (await answer).status))
      assert.deepEqual(statuses.sort(), [200, 409, 409, 409, 409])
      assert.equal(runs.length, 2)
    })
  })
}

test('one payment is good for another run when the answer of a handler cannot be passed on', async (t) => {
  const shop = await aShop(t)
  const quote = await shop.quote()
  const proof = proofOf(quote, await shop.pay(quote.bolt11))
  const taken = new Response('a cat')
  await taken.text()
  for (const answer of [taken, Response.error()]) {
    shop.script.answer = () => answer
    await assert.rejects(shop.visit(proof))
  }
  shop.script.answer = () => new Response('a cat')
  assert.equal((await shop.visit(proof)).status, 200)
  assert.equal(shop.served.length, 3)
})

// A fetch-style server reads a body that is one chunk at once, wherever its client is.
for (const form of FORMS.filter((form) => form !== 'fetch')) {
  test(`one payment is not given back by a failure of which its client took a part, ${form}`, async (t) => {
    const failed = async () => ({ status: 500, body: new Uint8Array(24 * MIB) })
    const { send, proof, seen, runs } = await aPaid(t, { form }, failed)
    const { begun, hangUp } = send(proof)
    await begun
    hangUp()
    await until('the client to be gone', async () => seen.gone === 1)
    const { status, body } = await send(proof).answer
    assert.deepEqual([status, String(body)], [409, '{"error":"receipt used"}'])
    assert.equal(runs.length, 1)
  })
}

/** An API of this form, and the proof of one payment for it. */
async function aPaid(
  t: TestContext,
  { form, ...own }: { form: Form } & Pick<GateOptions, 'store'>,
  handler: Handler,
) {
  const shop = await aShop(t)
  const runs: unknown[] = []
  const gate = createGate(Object.assign(shop.options, own))
  const { send, seen } = await anApi(t, { form, gate }, (request) => {
    runs.push(request)
    return handler(request)
  })
  const quote = JSON.parse(String((await send().answer).body)) as GateQuote
  const proof = proofOf(quote, await shop.pay(quote.bolt11))
  return { send, seen, runs, shop, quote, proof }
}
