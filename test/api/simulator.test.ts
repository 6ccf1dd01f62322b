import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { phraseIn } from '../support/answer.ts'
import { MINUTE, openOrder, simulatorPay } from '../support/buying.ts'
import { startServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'

suite('the simulator', () => {
  const theServer = shareServer()

  test('the simulator pays an invoice of its own once, and gives the preimage again when asked again', async (t) => {
    const server = await startServer(t)
    const { bolt11, paymentHash } = await openOrder(server, {})
    const paid = await simulatorPay(server, { bolt11 })
    assert.equal(paid.status, 200)
    const body = JSON.parse(paid.text)
    assert.match(body.preimage, /^[0-9a-f]{64}$/)
    assert.deepEqual(body, { preimage: body.preimage, paymentHash })
    const again = await simulatorPay(server, { bolt11 })
    assert.deepEqual([again.status, again.text], [200, paid.text])
    server.clock.advance(60 * 60 * 1000)
    assert.deepEqual((await simulatorPay(server, { bolt11 })).text, paid.text)
  })

  test('50 payments of one invoice at once all get the same preimage', async () => {
    const server = await theServer()
    const { bolt11 } = await openOrder(server, {})
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => simulatorPay(server, { bolt11 })),
    )
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1)
  })

  test('the simulator takes an invoice in the upper case of a QR code', async () => {
    const server = await theServer()
    const { bolt11 } = await openOrder(server, {})
    assert.equal((await simulatorPay(server, { bolt11: bolt11.toUpperCase() })).status, 200)
  })

  test('the simulator does not pay what has expired', async (t) => {
    const server = await startServer(t)
    const { bolt11 } = await openOrder(server, {})
    server.clock.advance(15 * MINUTE)
    const late = await simulatorPay(server, { bolt11 })
    assert.deepEqual([late.status, late.text], [400, '{"error":"invoice expired"}'])
  })

  test("the simulator knows neither somebody else's invoice nor a text that is not an invoice", async (t) => {
    const server = await theServer()
    const other = await startServer(t)
    const { bolt11: foreign } = await openOrder(other, {})
    const { bolt11 } = await openOrder(server, {})
    for (const text of [foreign, 'lnbcrt1', 'x', `${bolt11}q`, `lightning:${bolt11}`, '\u0000']) {
      const answer = await simulatorPay(server, { bolt11: text })
      assert.deepEqual([answer.status, answer.text], [404, '{"error":"not found"}'], text)
    }
  })

  test('the simulator takes one invoice in one member, and nothing else', async () => {
    const server = await theServer()
    const { bolt11 } = await openOrder(server, {})
    for (const body of [{}, { bolt11: 1 }, { bolt11: '' }, { bolt11, x: 1 }, [bolt11], null]) {
      const answer = await simulatorPay(server, body)
      assert.deepEqual([answer.status, answer.text], [400, '{"error":"invalid request body"}'])
    }
    const tooLong = await simulatorPay(server, { bolt11: 'l'.repeat(4097) })
    assert.equal(tooLong.text, '{"error":"invalid request body"}')
    const tooLarge = await simulatorPay(server, { bolt11: 'l'.repeat(20_000) })
    assert.deepEqual([tooLarge.status, tooLarge.text], [400, '{"error":"request too large"}'])
    const broken = await fetch(`${server.url}/simulator/pay`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"bolt11":',
    })
    assert.deepEqual(
      [broken.status, phraseIn(broken.status, await broken.text())],
      [400, '{"error":"invalid request body"}'],
    )
    assert.equal((await simulatorPay(server, { bolt11 })).status, 200, 'none of them paid it')
  })
})
