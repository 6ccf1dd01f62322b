import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { decodeJwt } from 'jose'
import { aGate, authorized, givesBack, pay, type World } from '../support/gate.ts'

const MINUTE = 60_000

describe('a receipt that was given back', () => {
  test('a receipt that was given back is followed by a fresh one, for five minutes from when it is asked for', async (t) => {
    const world = await aGate(t)
    const intent = await world.quoted()
    const first = await pay(world, intent)
    assert.equal(await givesBack(world, intent, first.receipt_id), 'recorded')
    world.clock.advance(60 * MINUTE)
    const second = await authorized(world.service.poll(intent))
    assert.notEqual(second.receipt_id, first.receipt_id)
    const { jti, exp, gb, intent: of, ph } = decodeJwt(second.receipt)
    assert.deepEqual(
      [jti, gb, of, ph],
      [second.receipt_id, 1, intent.intent_id, intent.payment_hash],
    )
    assert.ok(Number(exp) * 1000 > world.clock.now() + 4 * MINUTE)
    assert.equal(decodeJwt(first.receipt).gb, undefined)
    // That one stays, and nothing was paid for it.
    assert.deepEqual(await pay(world, intent), second)
    assert.equal((await world.project()).credits, 9)
  })

  test('a receipt that was given back stays one when it is given back again, also after the fresh one was made', async (t) => {
    const world = await aGate(t)
    const intent = await world.quoted()
    const first = await pay(world, intent)
    assert.equal(await givesBack(world, intent, first.receipt_id), 'recorded')
    assert.equal(await givesBack(world, intent, first.receipt_id), 'recorded')
    const second = await pay(world, intent)
    assert.equal(await givesBack(world, intent, first.receipt_id), 'recorded')
    assert.deepEqual(await pay(world, intent), second)
    assert.equal(decodeJwt(second.receipt).gb, 1)
  })

  test('a receipt that was given back makes one fresh receipt for 50 who ask at once', async (t) => {
    const world = await aGate(t)
    const intent = await world.quoted()
    const first = await pay(world, intent)
    const other = await world.another()
    await world.service.giveBack(intent, first.receipt_id)
    const preimage = world.wallet.pay(intent.bolt11)
    const receipts = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        authorized(i % 2 === 0 ? world.service.prove(intent, preimage) : other.poll(intent)),
      ),
    )
    assert.equal(new Set(receipts.map(({ receipt }) => receipt)).size, 1)
    assert.equal(decodeJwt(receipts[0]?.receipt ?? '').gb, 1)
  })

  test('a receipt that was given back is not renewed by a wrong preimage', async (t) => {
    const world = await aGate(t)
    const intent = await world.quoted()
    const first = await pay(world, intent)
    await world.service.giveBack(intent, first.receipt_id)
    await assert.rejects(world.service.prove(intent, '00'.repeat(32)), { phrase: 'wrong preimage' })
    world.clock.advance(10 * MINUTE)
    const { exp } = decodeJwt((await pay(world, intent)).receipt)
    assert.ok(Number(exp) * 1000 > world.clock.now() + 4 * MINUTE)
  })
})

describe('giving back', () => {
  test('giving back is refused for any receipt but the newest of this intent', async (t) => {
    const world = await aGate(t)
    const [mine, other, open] = [await world.quoted(), await world.quoted(), await world.quoted()]
    const [receipt, theirs] = [await pay(world, mine), await pay(world, other)]
    const next = `${mine.intent_id}.1`
    for (const receiptId of [theirs.receipt_id, next, 'none', '']) {
      assert.equal(await givesBack(world, mine, receiptId), 'give-back refused')
    }
    assert.equal(await givesBack(world, open, receipt.receipt_id), 'give-back refused')
    assert.deepEqual(await pay(world, mine), receipt)
    assert.equal(unhonoured(world).length, 0)
  })

  test('giving back happens twice for an intent at most; the third is noted as paid and not honoured', async (t) => {
    const world = await aGate(t)
    const intent = await world.quoted()
    for (const expected of ['recorded', 'recorded', 'give-back refused', 'give-back refused']) {
      const { receipt_id: receiptId } = await pay(world, intent)
      assert.equal(await givesBack(world, intent, receiptId), expected)
      assert.equal(await givesBack(world, intent, receiptId), expected, 'repeated')
    }
    const backs = world.logged.filter(({ event }) => event === 'gate.given_back')
    assert.deepEqual(
      backs.map(({ paymentHash, failedRuns }) => [paymentHash, failedRuns]),
      [
        [intent.payment_hash, 1],
        [intent.payment_hash, 2],
      ],
    )
    // Once, however often it is tried.
    assert.equal(unhonoured(world).length, 1)
    assert.deepEqual(
      (await world.projects.unhonoured()).map(({ intentId, amountSats }) => [intentId, amountSats]),
      [[intent.intent_id, 50]],
    )
    assert.equal((await world.project()).credits, 9)
  })
})

test('a payment whose failed run was never reported is honoured by the operator, and may fail twice more', async (t) => {
  const world = await aGate(t)
  const intent = await world.quoted()
  await pay(world, intent)
  assert.equal(await world.projects.honour(intent.intent_id), 'fresh receipt')
  const outcomes: string[] = []
  for (let number = 1; number <= 3; number++) {
    const { receipt, receipt_id: receiptId } = await pay(world, intent)
    assert.equal(decodeJwt(receipt).gb, number)
    outcomes.push(await givesBack(world, intent, receiptId))
  }
  assert.deepEqual(outcomes, ['recorded', 'recorded', 'give-back refused'])
})

const unhonoured = (world: World) => world.logged.filter(({ event }) => event === 'gate.unhonoured')
