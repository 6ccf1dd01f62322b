/** What a restored backup does not know was paid all the same: the operator makes it good, once. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { books, poll, purchase, quoteOf, settlement } from '../support/buying.ts'
import { runInThread as run } from '../support/command-threads.ts'
import { temporaryFolder } from '../support/folder.ts'
import { look, paid, SCHEMES, type Scheme } from '../support/one-url.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { query, settingsFor } from '../support/store.ts'
import {
  assertError,
  capabilityOf,
  L402,
  openOrderVia,
  PAYMENT,
  paidOrderVia,
  use,
} from '../support/wallet-flow.ts'

const SPARK = ['--product', 'catch', '--plan', 'spark']

const restore = (server: TestServer, ...args: string[]) =>
  run(['order', 'restore', ...args], settingsFor(server.databaseUrl))

type Paid = Awaited<ReturnType<typeof paidOrderVia>>

/** As a store is that was restored from a copy before the order. */
async function lose(server: TestServer): Promise<void> {
  await query(server, 'delete from purchase_order')
  await query(server, 'delete from order_name')
  await query(server, 'delete from catch_inbox')
}

for (const [name, flow] of Object.entries({ L402, Payment: PAYMENT })) {
  test(`an order that was lost is made good by its payment hash, and its ${name} credential collects it and meets no invoice`, async (t) => {
    const server = await startServer(t)
    const orders = []
    for (let i = 0; i < 3; i++) {
      const settled = settlement(server)
      orders.push(await paidOrderVia(server, flow))
      await settled
    }
    const [lost, underAnother, asAnother] = orders as [Paid, Paid, Paid]
    await lose(server)
    assertError(await purchase(server, lost.ask), '404 order not found')
    const restored = await restore(server, lost.paymentHash, ...SPARK)
    assert.equal(restored.code, 0, restored.err)
    assert.match(restored.out, /^[0-9a-f]{64} is settled as catch_\w{22} until /)
    const first = await purchase(server, lost.ask)
    const { publicId } = capabilityOf(first)
    assert.ok(restored.out.includes(publicId))
    assert.equal((await purchase(server, lost.ask)).text, first.text, 'an answer that was lost')
    assert.equal((await purchase(server, { ...lost.ask, key: randomUUID() })).text, first.text)
    const sent = await fetch(`${server.url}/c/${publicId}`, { method: 'POST', body: 'x' })
    assert.equal(sent.status, 204)

    const long = await restore(
      server,
      underAnother.paymentHash,
      '--product',
      'catch',
      '--plan',
      'long',
    )
    const collected = await purchase(server, { ...underAnother.ask, key: randomUUID() })
    assert.ok(long.out.includes(capabilityOf(collected).publicId))
    assert.equal((await purchase(server, underAnother.ask)).text, collected.text)

    const { paymentHash } = asAnother
    const pulse = await restore(server, paymentHash, '--product', 'pulse', '--plan', 'spark')
    assert.equal(pulse.code, 0, pulse.err)
    assertError(await purchase(server, asAnother.ask), '404 order not found')
    const alarm = new RegExp(`order.proven_unknown.*${paymentHash}.*"catch"`)
    assert.match(server.logged.join(''), alarm, 'the operator has to look again')
    assert.deepEqual(await books(server), { orders: 3, invoices: 3, settled: 3, inboxes: 2 })
  })
}

for (const scheme of Object.keys(SCHEMES) as Scheme[]) {
  test(`a purchase of one URL that was lost is made good, and its ${scheme} credential collects it`, async (t) => {
    const server = await startServer(t)
    const settled = settlement(server)
    const { authorization, paymentHash } = await paid(server, scheme)
    await settled
    await lose(server)
    assertError(await look(server, { authorization }), '404 order not found')
    const restored = await restore(server, paymentHash, ...SPARK)
    assert.equal(restored.code, 0, restored.err)
    const first = await look(server, { authorization })
    assert.ok(restored.out.includes(capabilityOf(first).publicId))
    assert.equal((await look(server, { authorization })).text, first.text)
    await use(server, first)
    assert.equal((await look(server, { authorization })).status, 402)
  })
}

test('a buyer of the native flow collects a lost order with its key and the preimage', async (t) => {
  const server = await startServer(t)
  const key = randomUUID()
  const { orderId, bolt11, paymentHash } = quoteOf(await purchase(server, { key }))
  const settled = settlement(server)
  const preimage = await server.pay(bolt11)
  await settled
  await lose(server)
  assertError(await poll(server, orderId), '404 order not found')
  const { code, err } = await restore(server, paymentHash, ...SPARK, '--order', orderId)
  assert.equal(code, 0, err)
  // Its id alone is not enough: the operator may have it from anybody.
  const proof = { 'payment-preimage': preimage }
  const keyed = { 'idempotency-key': key }
  for (const headers of [{}, keyed, proof]) {
    assertError(await poll(server, orderId, headers), '404 proof of payment required')
  }
  const first = await poll(server, orderId, { ...keyed, ...proof })
  capabilityOf(first)
  assert.equal((await purchase(server, { key, headers: proof })).text, first.text)
  assert.deepEqual(await books(server), { orders: 1, invoices: 1, settled: 1, inboxes: 1 })
})

test('an order that was not paid, or is known, or is unknown to the node, is not made good', async (t) => {
  const server = await startServer(t)
  const { paymentHash } = await openOrderVia(server, PAYMENT)
  const known = await restore(server, paymentHash, ...SPARK)
  assert.deepEqual([known.code, known.out], [1, ''])
  assert.match(known.err, /is in this store and is pending/)
  await lose(server)
  const unpaid = await restore(server, paymentHash, ...SPARK)
  assert.equal(unpaid.code, 1)
  assert.match(unpaid.err, /The node says that [0-9a-f]{64} is open and not paid/)
  const unknown = await restore(server, '0'.repeat(64), ...SPARK)
  assert.equal(unknown.code, 1)
  assert.match(unknown.err, /The node does not know the invoice/)
  assert.deepEqual(await books(server), { orders: 0, invoices: 1, settled: 0, inboxes: 0 })
  for (const wrong of [[], ['--product', 'gate', '--plan', 'spark'], ['--plan', 'huge']]) {
    assert.equal((await restore(server, paymentHash, ...wrong)).code, 2)
  }
})

test('a preimage proves the payment where the node has lost the invoice, if it is the right one', async (t) => {
  const server = await startServer(t)
  const { ask, paymentHash, preimage } = await openOrderVia(server, PAYMENT)
  await lose(server)
  await query(server, 'delete from simulator_invoice')
  const file = join(await temporaryFolder(t), 'preimage')
  await writeFile(file, `${'00'.repeat(32)}\n`)
  const wrong = await restore(server, paymentHash, ...SPARK, '--preimage-file', file)
  assert.deepEqual([wrong.code, wrong.out], [1, ''])
  assert.match(wrong.err, /That is not the preimage of/)
  const missing = await restore(server, paymentHash, ...SPARK, '--preimage-file', `${file}-none`)
  assert.equal(missing.code, 2)
  assert.match(missing.err, /preimage-none does not exist/)
  await writeFile(file, `${preimage}\n`)
  const right = await restore(server, paymentHash, ...SPARK, '--preimage-file', file)
  assert.equal(right.code, 0, right.err)
  assert.equal((right.out + right.err).includes(preimage), false)
  capabilityOf(await purchase(server, ask))
})

test('a lost WHISPER has no bytes to restore, and is noted as paid back', async (t) => {
  const server = await startServer(t)
  const settled = settlement(server)
  const order = await paidOrderVia(server, PAYMENT)
  await settled
  await lose(server)
  const whisper = [order.paymentHash, '--product', 'whisper', '--plan', 'spark']
  const refused = await restore(server, ...whisper)
  assert.deepEqual([refused.code, refused.out], [1, ''])
  assert.match(
    refused.err,
    /cannot be restored: the content .+ is lost .+ order refund .+ --reason <text>$/m,
  )
  const refund = ['order', 'refund', ...whisper, '--reason', 'lost']
  const noted = await run(refund, settingsFor(server.databaseUrl))
  assert.equal(noted.code, 0, noted.err)
  const shown = await run(['order', 'show', order.paymentHash], settingsFor(server.databaseUrl))
  assert.match(shown.out, /^state +refunded$/m)
  assert.equal((await restore(server, ...whisper)).code, 1)
})
