import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { MayflyError } from '../../src/client/errors.ts'
import type { GateAuthorization, GateQuote } from '../../src/client/index.ts'
import { register } from '../support/gate.ts'
import { aShop } from '../support/gate-server.ts'

describe('POST /api/gate/intents/{intentId}/give-back', () => {
  test('giving back is 204 twice for a receipt, and a repeat after 301 seconds gets a fresh one', async (t) => {
    const shop = await aShop(t)
    const { quote, preimage, receiptId } = await aPaid(shop)
    for (let i = 0; i < 2; i++)
      assert.equal((await shop.giveBack(quote.intentId, receiptId)).status, 204)
    shop.clock.advance(301_000)
    const again = (await shop.prove(quote, { preimage })).body as GateAuthorization
    assert.notEqual(again.receiptId, receiptId)
    assert.ok(Date.parse(again.expiresAt) > shop.clock.now() + 240_000)
    const polled = (await shop.poll(quote.intentId)).body as GateAuthorization
    assert.deepEqual(polled, again)
    // A straggler speaks of the receipt before, and changes nothing.
    assert.equal((await shop.giveBack(quote.intentId, receiptId)).status, 204)
    assert.deepEqual((await shop.poll(quote.intentId)).body, again)
    assert.equal((await shop.projects((some) => some.show(shop.projectId))).credits, 9)
  })

  test('giving back is 409 for the third of an intent, and the operator learns of it', async (t) => {
    const shop = await aShop(t)
    const { quote, preimage } = await aPaid(shop)
    const statuses: number[] = []
    for (let i = 0; i < 3; i++) {
      const { receiptId } = (await shop.prove(quote, { preimage })).body as GateAuthorization
      const answer = await shop.giveBack(quote.intentId, receiptId)
      statuses.push(answer.status)
      if (answer.status === 409) assert.deepEqual(answer.body, { error: 'give-back refused' })
    }
    assert.deepEqual(statuses, [204, 204, 409])
    assert.ok(shop.logged.some((line) => line.includes('gate.unhonoured')))
    const [owed] = await shop.projects((some) => some.unhonoured())
    assert.equal(owed?.paymentHash, quote.paymentHash)
  })

  test('giving back is 409 for a receipt that is not the newest of this intent', async (t) => {
    const shop = await aShop(t)
    const [one, other] = [await aPaid(shop), await aPaid(shop)]
    assert.equal((await shop.giveBack(one.quote.intentId, other.receiptId)).status, 409)
    assert.equal((await shop.giveBack(one.quote.intentId, 'none')).status, 409)
  })

  test('giving back takes the capability of the project and nothing else', async (t) => {
    const shop = await aShop(t)
    const { quote, receiptId } = await aPaid(shop)
    const stranger = await register(shop)
    const { authorization } = await shop.credentialOf()
    for (const [intentId, bearer, error] of [
      [quote.intentId, '', 'invalid project capability'],
      [quote.intentId, authorization, 'invalid project capability'],
      [quote.intentId, `Bearer ${stranger.capability}`, 'intent mismatch'],
      [`gate_intent_${'0'.repeat(22)}`, `Bearer ${shop.capability}`, 'intent mismatch'],
    ] as const) {
      const answer = await shop.giveBack(intentId, receiptId, { authorization: bearer })
      assert.equal(answer.status, 401)
      assert.deepEqual(answer.body, { error })
    }
  })

  test('giving back takes one receipt id and nothing else', async (t) => {
    const shop = await aShop(t)
    const { quote, receiptId } = await aPaid(shop)
    for (const body of [
      '',
      '{}',
      '[]',
      '{"receiptId":7}',
      '{"receiptId":""}',
      `{"receiptId":"${'x'.repeat(65)}"}`,
      `{"receiptId":"${receiptId}","x":1}`,
    ]) {
      const answer = await shop.giveBackRaw(quote.intentId, body)
      assert.equal(answer.status, 400, body)
      assert.deepEqual(answer.body, { error: 'invalid request body' }, body)
    }
    const text = { 'content-type': 'text/plain' }
    assert.deepEqual((await shop.giveBackRaw(quote.intentId, '{}', text)).body, {
      error: 'unsupported media type',
    })
  })

  test('the SDK gives a receipt back with one call', async (t) => {
    const shop = await aShop(t)
    const { quote, preimage, receiptId } = await aPaid(shop)
    await shop.gate.giveBack(quote.intentId, receiptId)
    const again = await shop.gate.prove(quote.intentId, preimage)
    assert.ok(again.settled && again.receiptId !== receiptId)
    await assert.rejects(
      shop.gate.giveBack(quote.intentId, 'none'),
      (error) => error instanceof MayflyError && error.phrase === 'give-back refused',
    )
  })
})

async function aPaid({ create, prove, pay }: Awaited<ReturnType<typeof aShop>>) {
  const quote = (await create({})).body as GateQuote
  const preimage = await pay(quote.bolt11)
  const { receiptId } = (await prove(quote, { preimage })).body as GateAuthorization
  return { quote, preimage, receiptId }
}
