import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSimulator } from '../../src/lightning/simulator.ts'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import type { After } from '../support/folder.ts'
import { testClock } from '../support/server.ts'
import { aDatabaseUrl, openDatabase } from '../support/store.ts'

test('each invoice of the simulator has a payment hash and a payment secret of its own', async (t) => {
  const simulator = await createSimulator(await aWorld(t))
  const made = Array.from({ length: 200 }, () =>
    decodeInvoice(simulator.signInvoice(INVOICE).bolt11),
  )
  const random = made.flatMap(({ paymentHash, paymentSecret }) => [paymentHash, paymentSecret])
  assert.equal(new Set(random).size, 400)
})

test('the simulator forgets an invoice a week after its end, and none while the clock is held', async (t) => {
  const { db, clock } = await aWorld(t)
  let isHeld = true
  const simulator = await createSimulator({ db, clock: { ...clock, isHeld: () => isHeld } })
  const { paymentHash } = await simulator.createInvoice(INVOICE)
  clock.jump(8 * DAY)
  await simulator.createInvoice(INVOICE)
  assert.deepEqual(await simulator.lookupInvoice(paymentHash), { state: 'dead', isFinal: true })
  isHeld = false
  await simulator.createInvoice(INVOICE)
  await assert.rejects(simulator.lookupInvoice(paymentHash), { name: 'UnknownInvoice' })
})

test('who follows the payments of the simulator is told of none after the end of that', async (t) => {
  const simulator = await createSimulator(await aWorld(t))
  const told: string[] = []
  const stop = new AbortController()
  const followed = simulator.watch((paymentHash) => told.push(paymentHash), stop.signal)
  const [first, second] = [
    await simulator.createInvoice(INVOICE),
    await simulator.createInvoice(INVOICE),
  ]
  await simulator.pay(first.bolt11)
  stop.abort()
  await followed
  await simulator.pay(second.bolt11)
  assert.deepEqual(told, [first.paymentHash])
})

const INVOICE = { amountMsat: 1000, memo: 'a quote', expirySeconds: 60 }
const DAY = 86_400_000

async function aWorld(t: After) {
  const db = await openDatabase(await aDatabaseUrl(t))
  t.after(db.close)
  return { db, clock: testClock() }
}
