import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSimulator } from '../../src/lightning/simulator.ts'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import { testClock } from '../support/server.ts'
import { aDatabaseUrl, openDatabase } from '../support/store.ts'

test('each invoice of the simulator has a payment hash and a payment secret of its own', async (t) => {
  const db = await openDatabase(await aDatabaseUrl(t))
  t.after(db.close)
  const simulator = await createSimulator({ db, clock: testClock() })
  const made = Array.from({ length: 200 }, () =>
    decodeInvoice(
      simulator.signInvoice({ amountMsat: 1000, memo: 'a quote', expirySeconds: 60 }).bolt11,
    ),
  )
  const random = made.flatMap(({ paymentHash, paymentSecret }) => [paymentHash, paymentSecret])
  assert.equal(new Set(random).size, 400)
})
