import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { GateQuote } from '../../src/client/index.ts'
import { createGate } from '../../src/gate-middleware/middleware.ts'
import {
  type Answer,
  type AnswerOf,
  createStoredAnswers,
  MAX_STORED_BYTES,
} from '../../src/gate-middleware/stored-answers.ts'
import { anApi, FORMS, type Form, type Handler, send } from '../support/gate-forms.ts'
import { aShop, proofOf } from '../support/gate-middleware.ts'
import { until } from '../support/until.ts'

for (const form of FORMS) {
  describe(`a stored answer, ${form}`, () => {
    test('a stored answer comes three times more to whoever repeats the request, whole, and without a session', async (t) => {
      const { url, proof, runs } = await aPaid(t, form, async () => ({
        status: 201,
        headers: {
          'content-type': 'text/plain; charset=utf-8',
          'set-cookie': 'session=1',
          'cache-control': 'public, max-age=60',
          'accept-ranges': 'bytes',
          'x-own': 'yes',
        },
        body: 'a cat',
      }))
      const first = await send(url, proof).answer
      assert.equal(first.status, 201)
      assert.ok(first.headers['set-cookie'])
      for (let i = 0; i < 3; i++) {
        const { status, headers, body } = await send(url, { ...proof, range: 'bytes=2-' }).answer
        assert.deepEqual([status, String(body)], [201, 'a cat'])
        assert.equal(headers['content-type'], 'text/plain; charset=utf-8')
        assert.equal(headers['cache-control'], 'private, no-store')
        assert.equal(headers['x-own'], 'yes')
        assert.equal(headers['gate-receipt'], first.headers['gate-receipt'])
        for (const name of ['set-cookie', 'accept-ranges', 'content-range']) {
          assert.equal(headers[name], undefined, name)
        }
      }
      assert.equal((await send(url, proof).answer).status, 409)
      assert.equal(runs.length, 1)
    })

    test('a stored answer is there for a payer whose connection was lost before the handler was done', async (t) => {
      const work = Promise.withResolvers<void>()
      const { url, proof, seen, runs } = await aPaid(t, form, async () => {
        await work.promise
        return { body: 'a cat' }
      })
      const { hangUp } = send(url, proof)
      await until('the handler to begin', async () => runs.length === 1)
      hangUp()
      await until('the client to be gone', async () => seen.gone === 1)
      const again = send(url, proof)
      await until('the payer to come again', async () => seen.arrived === 3)
      work.resolve()
      const { status, body } = await again.answer
      assert.deepEqual([status, String(body)], [200, 'a cat'])
      assert.equal(runs.length, 1)
    })

    test('a stored answer is for the cookie and the authorization that it was made for', async (t) => {
      const { url, proof } = await aPaid(t, form, async () => ({ body: 'a cat' }))
      assert.equal((await send(url, { ...proof, cookie: 'a=1' }).answer).status, 200)
      for (const other of [{}, { cookie: 'a=2' }, { cookie: 'a=1', authorization: 'Basic eA==' }]) {
        assert.equal((await send(url, { ...proof, ...other }).answer).status, 409)
      }
      assert.equal((await send(url, { ...proof, cookie: 'a=1' }).answer).status, 200)
    })

    test('no answer is stored that is large, failed, refused, or a part', async (t) => {
      const large = 'x'.repeat(MAX_STORED_BYTES + 1)
      for (const { status, body } of [
        { status: 200, body: large },
        { status: 404, body: 'no' },
        { status: 302, body: '' },
        { status: 206, body: 'part' },
      ]) {
        const { url, proof, runs } = await aPaid(t, form, async () => ({ status, body }))
        assert.equal((await send(url, proof).answer).status, status)
        assert.equal((await send(url, proof).answer).status, 409, String(status))
        assert.equal(runs.length, 1)
      }
    })

    test("a stored answer is gone with its receipt's five minutes", async (t) => {
      const { url, proof, runs, shop } = await aPaid(t, form, async () => ({ body: 'a cat' }))
      assert.equal((await send(url, proof).answer).status, 200)
      shop.clock.advance(301_000)
      assert.equal((await send(url, proof).answer).status, 409)
      assert.equal(runs.length, 1)
    })
  })
}

describe('stored answers', () => {
  test('no answers are stored unless that is switched on', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const proof = proofOf(quote, await shop.pay(quote.bolt11))
    assert.equal((await shop.visit(proof)).status, 200)
    assert.equal((await shop.visit(proof)).status, 409)
  })

  test('stored answers are bounded in number and in bytes, and the oldest go', () => {
    const byNumber = createStoredAnswers(() => 0, { maxAnswers: 2 })
    for (const intent of ['a', 'b', 'c']) byNumber.keep(of(intent), anAnswer(1), 10)
    const left = ['a', 'b', 'c'].map((intent) => byNumber.take(of(intent)) !== null)
    assert.deepEqual(left, [false, true, true])
    const byBytes = createStoredAnswers(() => 0, { maxBytes: 100 })
    for (const intent of ['a', 'b', 'c']) byBytes.keep(of(intent), anAnswer(50), 10)
    const rest = ['a', 'b', 'c'].map((intent) => byBytes.take(of(intent)) !== null)
    assert.deepEqual(rest, [false, true, true])
  })

  test('stored answers belong to one request: another intent, binding or sender finds none', () => {
    const answers = createStoredAnswers(() => 0)
    answers.keep(of('a'), anAnswer(1), 10)
    for (const other of [
      { intent: 'b' },
      { requestDigest: 'other' },
      { cookie: 'x' },
      { authorization: 'x' },
    ]) {
      assert.equal(answers.take({ ...of('a'), ...other }), null)
    }
    assert.ok(answers.take(of('a')))
  })
})

const of = (intent: string): AnswerOf => ({
  intent,
  requestDigest: 'digest',
  cookie: null,
  authorization: null,
})

const anAnswer = (length: number): Answer => ({
  status: 200,
  headers: {},
  body: new Uint8Array(length),
})

async function aPaid(t: TestContext, form: Form, handler: Handler) {
  const shop = await aShop(t)
  const runs: unknown[] = []
  const gate = createGate({ ...shop.options, storedAnswers: true })
  const { url, seen } = await anApi(t, { form, gate }, (request) => {
    runs.push(request)
    return handler(request)
  })
  const quote = JSON.parse(String((await send(url).answer).body)) as GateQuote
  const proof = proofOf(quote, await shop.pay(quote.bolt11))
  return { url, seen, runs, shop, proof }
}
