/** A service that gets another public address owes what was paid at the old one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { books, purchase, quoteOf } from '../support/buying.ts'
import { startServer } from '../support/server.ts'
import {
  BASE_URL,
  capabilityOf,
  L402,
  openOrderVia,
  PAYMENT,
  paidOrderVia,
} from '../support/wallet-flow.ts'

const NEW_URL = 'http://127.0.0.1:9402'
const ONE = { orders: 1, invoices: 1, settled: 1, inboxes: 1 }

for (const [name, flow] of Object.entries({ L402, Payment: PAYMENT })) {
  test(`what a ${name} challenge of the old public address was or is paid for is delivered after it changed`, async (t) => {
    const { server, move } = await aMovingShop(t)
    const [delivered, paid] = [await paidOrderVia(server, flow), await paidOrderVia(server, flow)]
    const open = await openOrderVia(server, flow)
    const answer = await purchase(server, delivered.ask)
    await move()
    assert.equal((await purchase(server, delivered.ask)).text, answer.text)
    const first = await purchase(server, paid.ask)
    capabilityOf(first)
    assert.equal((await purchase(server, paid.ask)).text, first.text)
    await server.pay(open.bolt11)
    capabilityOf(await purchase(server, open.ask))
    assert.deepEqual(await books(server), { orders: 3, invoices: 3, settled: 3, inboxes: 3 })
  })

  test(`a repeat at the new public address shows the same invoice, in a ${name} challenge that opens`, async (t) => {
    const { server, move } = await aMovingShop(t)
    const order = await openOrderVia(server, flow)
    await move()
    const again = await openOrderVia(server, flow, { key: order.key })
    assert.equal(quoteOf(again.challenge).bolt11, order.bolt11)
    await server.pay(order.bolt11)
    capabilityOf(await purchase(server, again.ask))
    assert.deepEqual(await books(server), ONE)
  })
}

async function aMovingShop(t: Parameters<typeof startServer>[0]) {
  const environment = { MAYFLY_BASE_URL: BASE_URL }
  const server = await startServer(t, environment)
  return {
    server,
    async move() {
      environment.MAYFLY_BASE_URL = NEW_URL
      await server.restart()
    },
  }
}
