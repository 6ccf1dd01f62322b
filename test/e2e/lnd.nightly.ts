/** Selling over LND while all is well: quotes, payments and deliveries, on two real nodes. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { pino } from 'pino'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import { readConfig } from '../../src/service/config.ts'
import { serve } from '../../src/service/serve.ts'
import { pollExtension as pollWith, quoteOf } from '../support/buying.ts'
import { endIn, extend, SPARK_MS, statusOf } from '../support/extension.ts'
import type { After } from '../support/folder.ts'
import { missingNodes } from '../support/nodes/testbed.ts'
import { startProgram } from '../support/program.ts'
import { startServer, testClock } from '../support/server.ts'
import { aDatabaseUrl, settingsFor } from '../support/store.ts'
import { until } from '../support/until.ts'
import {
  capabilityOf,
  collect,
  EXPIRED,
  pending,
  poll,
  purchase,
  quote,
  sellingOver,
  untilSettled,
  useInbox,
} from './lnd-market.ts'
import { shareNodes } from './shared-nodes.ts'

describe('selling over LND', { skip: await missingNodes() }, () => {
  const nodes = shareNodes()
  const onAlice = (t: After) => sellingOver(t, nodes.testbed.alice)

  test("a quote carries the node's own invoice, and no way to pay it but Lightning", async (t) => {
    const server = await startServer(t, await onAlice(t))
    const { bolt11, paymentHash, amountSats, expiresAt, network } = await quote(server.url)
    const invoice = decodeInvoice(bolt11)
    assert.equal(network, 'regtest')
    assert.equal(invoice.amountMsat, amountSats * 1000)
    assert.equal(invoice.paymentHash, paymentHash)
    assert.equal(invoice.expiresAt, Date.parse(expiresAt))
    const { state } = await nodes.testbed.alice.get(`/v1/invoice/${paymentHash}`)
    assert.equal(state, 'OPEN')
    await assert.rejects(server.pay(bolt11), /404/)
    await nodes.books.balance(server)
  })

  test('an order is settled while nobody polls it, and is there for its buyer', async (t) => {
    const server = await startServer(t, await onAlice(t))
    const { orderId, paymentHash, bolt11 } = await quote(server.url)
    await nodes.testbed.pay(bolt11)
    await untilSettled(server, paymentHash)
    assert.equal((await poll(server.url, orderId)).status, 200)
    await nodes.books.balance(server)
  })

  test('an order paid while the service was killed is found at its next start', async (t) => {
    const databaseUrl = await aDatabaseUrl(t)
    const environment = await onAlice(t)
    const first = await startProgram(t, databaseUrl, { environment })
    const { orderId, paymentHash, bolt11 } = await quote(first.url)
    await first.kill()
    await nodes.testbed.pay(bolt11)

    const second = await startProgram(t, databaseUrl, { environment })
    assert.equal((await second.saw('order.settled')).paymentHash, paymentHash)
    const inbox = capabilityOf(await poll(second.url, orderId))
    assert.deepEqual((await poll(second.url, orderId)).body, { error: 'already delivered' })
    await useInbox(second.url, inbox)
    await nodes.books.balance({ databaseUrl })
  })

  test('an extension paid while the service was killed adds the plan once, and its inbox goes on', async (t) => {
    const databaseUrl = await aDatabaseUrl(t)
    const environment = await onAlice(t)
    const first = await startProgram(t, databaseUrl, { environment })
    const bought = await quote(first.url)
    await nodes.testbed.pay(bought.bolt11)
    const inbox = await collect(first.url, bought.orderId)
    const order = quoteOf(await extend(first, inbox))
    await first.kill()
    const preimage = await nodes.testbed.pay(order.bolt11)

    const second = await startProgram(t, databaseUrl, { environment })
    const end = await until('it is extended', async () => {
      const answer = await pollWith(second, order.orderId, { 'payment-preimage': preimage })
      return answer.status === 200 && endIn(answer)
    })
    assert.equal(Date.parse(end), Date.parse(inbox.expiresAt) + SPARK_MS)
    const status = await statusOf(second, inbox)
    assert.deepEqual([status?.expiresAt, status?.requestLimit], [end, 200])
    await useInbox(second.url, inbox)
    await nodes.books.balance({ databaseUrl })
  })

  test('50 orders paid at once become 50 capabilities, one each', async (t) => {
    const server = await startServer(t, await onAlice(t))
    const orders = await Promise.all(Array.from({ length: 50 }, () => quote(server.url)))
    const payments = Promise.all(orders.map(({ bolt11 }) => nodes.testbed.pay(bolt11)))
    const inboxes = await Promise.all(orders.map(({ orderId }) => collect(server.url, orderId)))
    await payments
    assert.equal(new Set(inboxes.map((inbox) => inbox.publicId)).size, 50)
    assert.equal(new Set(inboxes.map((inbox) => inbox.ownerToken)).size, 50)
    for (const { orderId } of orders) {
      assert.deepEqual((await poll(server.url, orderId)).body, { error: 'already delivered' })
    }
    await nodes.books.balance(server)
  })

  test('an unpaid order is pending until the node calls its invoice dead', async (t) => {
    const server = await serveShortQuotes(t, await onAlice(t))
    const key = randomUUID()
    const order = await quote(server.url, key)
    nodes.testbed.alice.freeze()
    try {
      // Past the quote on our clock, and the node cannot say that nobody paid.
      server.clock.advance(60_000)
      assert.deepEqual(await poll(server.url, order.orderId), pending(order))
      assert.deepEqual((await purchase(server.url, key)).body, order)
    } finally {
      nodes.testbed.alice.thaw()
    }
    await until('the end of the order', async () => {
      return (await poll(server.url, order.orderId)).status !== 402
    })
    assert.deepEqual(await poll(server.url, order.orderId), EXPIRED)
    assert.deepEqual(await purchase(server.url, key), EXPIRED)
    await assert.rejects(nodes.testbed.pay(order.bolt11), /invoice expired/)
    assert.deepEqual(await poll(server.url, order.orderId), EXPIRED)
    await nodes.books.balance(server)
  })

  test('every payment that the node ever received has bought something', async () => {
    await nodes.books.close()
  })
})

/** Quotes of a second, which no setting allows. */
async function serveShortQuotes(t: After, environment: Record<string, string>) {
  const databaseUrl = await aDatabaseUrl(t)
  const config = readConfig({
    MAYFLY_PORT: '0',
    ...settingsFor(databaseUrl),
    ...environment,
  })
  const clock = testClock()
  const log = pino({ level: 'silent' })
  const server = await serve({ ...config, quoteSeconds: 1 }, log, { clock })
  t.after(() => server.stop())
  return { url: server.url, databaseUrl, clock }
}
