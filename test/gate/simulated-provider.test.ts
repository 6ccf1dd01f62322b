import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSimulatedProvider, failureReason } from '../../src/gate/provider.ts'
import { createSimulator } from '../../src/lightning/simulator.ts'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import { LnurlError } from '../../src/protocol/lnurl.ts'
import { testClock } from '../support/server.ts'
import { aMigratedDatabaseUrl, openDatabase } from '../support/store.ts'

test('the simulator in place of a provider makes invoices for any address, and tells which are paid', async (t) => {
  const db = await openDatabase(await aMigratedDatabaseUrl(t))
  t.after(() => db.close())
  const clock = testClock()
  const lightning = await createSimulator({ db, clock })
  const allowed = new Set<string>()
  const provider = createSimulatedProvider({ lightning, allowed, invoiceSeconds: 901, clock })
  const address = 'alice@example.com'
  assert.equal(await provider.probe(address, [1]), 'provider')
  const { bolt11, paymentHash, verify, ...rest } = await provider.invoice(address, 7_000)
  const invoice = decodeInvoice(bolt11)
  assert.deepEqual(
    [invoice.amountMsat, invoice.description, invoice.paymentHash, invoice.expirySeconds],
    [7_000, 'Mayfly GATE on the simulator', paymentHash, 901],
  )
  assert.equal(verify, 'simulator:')
  assert.deepEqual(rest, { expiresAt: invoice.expiresAt })
  const isSettled = () => provider.isSettled({ bolt11, paymentHash, verify: 'simulator:' })
  assert.equal(await isSettled(), false)
  await lightning.pay(bolt11)
  assert.equal(await isSettled(), true)
  for (const wrong of ['alice', 'alice@127.0.0.1']) {
    await assert.rejects(provider.probe(wrong, [1]), LnurlError)
    await assert.rejects(provider.invoice(wrong, 1_000), LnurlError)
  }
  await provider.close()
})

test("a provider's failure has a reason, and a mistake of ours is thrown on", () => {
  assert.equal(failureReason(new LnurlError('it is away')), 'it is away')
  const ours = new TypeError('undefined is not a function')
  assert.throws(() => failureReason(ours), ours)
})
