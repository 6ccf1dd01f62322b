/** What the log tells of an intent, by which an operator finds a payment again. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aGate, authorized, type World } from '../support/gate.ts'
import { unit } from '../support/unit.ts'

const last = ({ logged }: World) => logged.at(-1)

test('the log tells of a quote, by route and price, and once however often it is repeated', async (t) => {
  const world = await aGate(t)
  const intent = await world.quoted({ key: 'a-key-of-one' })
  await world.quoted({ key: 'a-key-of-one' })
  assert.deepEqual(world.logged, [
    {
      event: 'gate.quoted',
      intentId: intent.intent_id,
      paymentHash: intent.payment_hash,
      projectId: world.projectId,
      routeId: 'render',
      amountSats: 50,
    },
  ])
})

test('the log tells of an authorization, by how it was proven and what is left', async (t) => {
  const world = await aGate(t)
  for (const [by, creditsRemaining] of [
    ['preimage', 9],
    ['provider', 8],
  ] as const) {
    const intent = await world.quoted()
    const preimage = world.wallet.pay(intent.bolt11)
    const { receipt_id: receiptId } = await authorized(
      by === 'preimage' ? world.service.prove(intent, preimage) : world.service.poll(intent),
    )
    assert.deepEqual(last(world), {
      event: 'gate.authorized',
      intentId: intent.intent_id,
      paymentHash: intent.payment_hash,
      projectId: world.projectId,
      receiptId,
      amountSats: 50,
      by,
      creditsRemaining,
    })
  }
})

/** What happens to the project while its provider makes the invoice. */
for (const [what, change, kind] of [
  ['is suspended', 'update gate_project set suspended_at = 1', 'invalid project capability'],
  ['is deleted', 'delete from gate_project', 'invalid project capability'],
  ['loses its last credit', 'update gate_project set credits = 0', 'no credits'],
] as const) {
  test(`a project that ${what} while its provider makes the invoice gets no intent`, async (t) => {
    const world = await aGate(t)
    world.lnurl.answers.invoice = async (_url, _response, usual) => {
      await world.db.write(unit({ text: change, values: [] }))
      return usual()
    }
    assert.deepEqual(await world.open(), { kind })
    assert.deepEqual(world.logged, [])
    const [{ intents } = { intents: -1 }] = await world.db.read<{ intents: number }>(
      'select count(*) as intents from gate_intent',
    )
    assert.equal(intents, 0)
  })
}
