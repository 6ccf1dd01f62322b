/** "I paid and have nothing": the whole invoice and its preimage collect what is owed, and nothing less does. */
import assert from 'node:assert/strict'
import { hash, randomBytes, randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import {
  type Answer,
  DAY,
  DELIVERED,
  EXPIRED,
  NOT_FOUND,
  openOrder,
  poll,
  preimageOf,
  purchase,
  quoteOf,
  send,
} from '../support/buying.ts'
import { anInbox } from '../support/catch.ts'
import { runInThread as run } from '../support/command-threads.ts'
import { extend, paidExtension } from '../support/extension.ts'
import { anInvoice } from '../support/invoice.ts'
import { limited } from '../support/limits.ts'
import { opened as openedByUrl } from '../support/one-url.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { aShop, preimageOf as preimageIn, type Shop } from '../support/shop.ts'
import { query, settingsFor } from '../support/store.ts'
import { assertError, capabilityOf, use } from '../support/wallet-flow.ts'
import { openWhisperOrder } from '../support/whisper.ts'

const PATH = '/api/payments/recover'
const REFUNDED = '404 order refunded'

type Proof = { bolt11: string; preimage: string }

const post = (server: { url: string }, body: unknown): Promise<Answer> =>
  send(server.url + PATH, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': '203.0.113.9' },
    body: JSON.stringify(body),
  })

const recover = (server: { url: string }, { bolt11, preimage }: Proof): Promise<Answer> =>
  post(server, { bolt11, preimage })

async function paid(server: TestServer): Promise<Proof & { paymentHash: string; key: string }> {
  const { bolt11, paymentHash, key } = await openOrder(server)
  return { bolt11, paymentHash, key, preimage: await server.pay(bolt11) }
}

/** The same invoice as another node would have signed it, with a payment secret of its own. */
function forged({ bolt11 }: { bolt11: string }, paymentHash?: string): string {
  const invoice = decodeInvoice(bolt11)
  const { network, amountMsat, timestamp, expirySeconds, description } = invoice
  const fields = { network, amountMsat, timestamp, expirySeconds, description }
  return anInvoice({ ...fields, paymentHash: paymentHash ?? invoice.paymentHash }, randomBytes(32))
}

/** As a store is that was restored from a copy before the order. */
async function lose(server: TestServer): Promise<void> {
  await query(server, 'delete from purchase_order')
  await query(server, 'delete from order_name')
}

const alarmsOf = ({ logged }: Shop) =>
  logged.filter(({ event }) => event === 'order.proven_unknown')

const alarms = (server: TestServer): string[] =>
  server.logged.filter((line) => line.includes('order.proven_unknown'))

suite('the whole invoice and its preimage', () => {
  test('collect a purchase, byte for byte until its first use, as a wallet shows the two', async (t) => {
    const server = await startServer(t)
    const { bolt11, preimage } = await paid(server)
    const first = await recover(server, { bolt11, preimage })
    const spellings: Proof[] = [
      { bolt11: bolt11.toUpperCase(), preimage: preimage.toUpperCase() },
      { bolt11: `lightning:${bolt11}`, preimage },
      { bolt11: ` LIGHTNING:${bolt11.toUpperCase()}\n`, preimage },
    ]
    for (const proof of spellings) assert.equal((await recover(server, proof)).text, first.text)
    assert.deepEqual(first.lines('cache-control'), ['no-store'])
    await use(server, first)
    assert.deepEqual(await recover(server, { bolt11, preimage }), DELIVERED)
  })

  test('collect a purchase that the service has not seen paid, even after its quote', async (t) => {
    const server = await startServer(t)
    const { bolt11, paymentHash } = await openOrder(server)
    const preimage = await preimageOf(server, paymentHash)
    server.clock.advance(DAY)
    capabilityOf(await recover(server, { bolt11, preimage }))
  })

  test('collect a contested order, which its key alone does not', async (t) => {
    const server = await startServer(t, { MAYFLY_TRUSTED_PROXIES: '127.0.0.1' })
    const key = randomUUID()
    const quote = quoteOf(await purchase(server, { key, from: '198.51.100.9' }))
    await purchase(server, { key, from: '203.0.113.1' })
    const preimage = await server.pay(quote.bolt11)
    assertError(await poll(server, quote.orderId), '404 proof of payment required')
    capabilityOf(await recover(server, { bolt11: quote.bolt11, preimage }))
  })

  test('collect a purchase of one URL, and what was sold in place of an extension', async (t) => {
    const server = await startServer(t)
    const byUrl = await openedByUrl(server)
    await server.pay(byUrl.bolt11)
    capabilityOf(await recover(server, byUrl))
    const held = await anInbox(server)
    const extended = await paidExtension(server, held)
    const { text } = await recover(server, extended)
    assert.equal(JSON.parse(text).extended, true)
    const late = quoteOf(await extend(server, held))
    const { publicId, ownerToken } = held
    await send(`${server.url}/api/catch/${publicId}`, {
      method: 'DELETE',
      body: '',
      headers: { authorization: `Bearer ${ownerToken}` },
    })
    const preimage = await server.pay(late.bolt11)
    assertError(await poll(server, late.orderId), '404 proof of payment required')
    capabilityOf(await recover(server, { ...late, preimage }))
  })

  test('do not deliver what the service has lost of an order that died: the operator owes it', async (t) => {
    const server = await startServer(t)
    const { bolt11, paymentHash } = await openWhisperOrder(server)
    await query(server, `update purchase_order set state = 'dead'`)
    await query(server, 'delete from whisper_reservation')
    const preimage = await preimageOf(server, paymentHash)
    assertError(await recover(server, { bolt11, preimage }), '503 checkout unavailable')
    const [row] = await query(server, 'select state from purchase_order')
    assert.equal(row?.state, 'paid_unfulfilled')
  })

  test('are told how an order ended that is over, also after it was deleted', async (t) => {
    const server = await startServer(t)
    const [used, neverCollected, refunded] = [
      await paid(server),
      await paid(server),
      await paid(server),
    ]
    await use(server, await recover(server, used))
    const refund = ['order', 'refund', refunded.paymentHash, '--settled', '--reason', 'a test']
    assert.equal((await run(refund, settingsFor(server.databaseUrl))).code, 0)
    const assertTold = async () => {
      assert.deepEqual(await recover(server, used), DELIVERED)
      assert.deepEqual(await recover(server, neverCollected), EXPIRED)
      assertError(await recover(server, refunded), REFUNDED)
    }
    server.clock.advance(2 * DAY)
    await assertTold()
    for (const { paymentHash, ended } of [
      { ...used, ended: 'used' },
      { ...neverCollected, ended: 'aged' },
      { ...refunded, ended: 'aged' },
    ]) {
      await query(server, `insert into order_tombstone values ('${paymentHash}', '${ended}', 1)`)
    }
    await lose(server)
    await assertTold()
    assert.deepEqual(alarms(server), [])
  })

  test('of an order that the store has lost raise the alarm, and collect it once it is restored', async (t) => {
    const server = await startServer(t)
    const { paymentHash, ...proof } = await paid(server)
    await lose(server)
    assert.deepEqual(await recover(server, proof), NOT_FOUND)
    const [alarm, ...more] = alarms(server).map((line) => JSON.parse(line))
    assert.deepEqual(
      [alarm.paymentHash, alarm.product, alarm.planId, more.length],
      [paymentHash, 'catch', 'spark', 0],
    )
    const restore = ['order', 'restore', paymentHash, '--product', 'catch', '--plan', 'spark']
    assert.equal((await run(restore, settingsFor(server.databaseUrl))).code, 0)
    assert.deepEqual(await recover(server, { ...proof, bolt11: forged(proof) }), NOT_FOUND)
    capabilityOf(await recover(server, proof))
  })

  test('of an order that counts as unpaid, and was deleted, raise the alarm too', async (t) => {
    const server = await startServer(t)
    const { paymentHash, ...proof } = await paid(server)
    await lose(server)
    await query(server, `insert into order_tombstone values ('${paymentHash}', 'dead', 1)`)
    assert.deepEqual(await recover(server, proof), NOT_FOUND)
    assert.equal(alarms(server).length, 1)
  })
})

suite('less than the whole invoice and its preimage', () => {
  test('gets the same answer for what is unknown, unpaid or wrong, and changes nothing', async (t) => {
    const server = await startServer(t)
    const { bolt11, preimage, paymentHash } = await paid(server)
    const unpaid = await openOrder(server)
    const guesses: Proof[] = [
      { bolt11, preimage: '00'.repeat(32) },
      { bolt11: unpaid.bolt11, preimage },
      { bolt11: unpaid.bolt11, preimage: '00'.repeat(32) },
      // A node on the way of the payment knows hash and preimage, and can sign an invoice of its own.
      { bolt11: forged({ bolt11 }), preimage },
      { bolt11: `${bolt11.slice(0, -1)}${bolt11.endsWith('q') ? 'p' : 'q'}`, preimage },
      { bolt11: bolt11.slice(0, -8), preimage },
      { bolt11: paymentHash, preimage },
      { bolt11: 'lightning:', preimage },
    ]
    for (const guess of guesses) {
      const { status, text, lines } = await recover(server, guess)
      assert.deepEqual({ status, text }, NOT_FOUND, JSON.stringify(guess))
      assert.deepEqual(lines('retry-after'), [])
    }
    await lose(server)
    assert.deepEqual(await recover(server, { bolt11: forged({ bolt11 }), preimage }), NOT_FOUND)
    assert.deepEqual(alarms(server), [])
  })

  test('gets it for what our node has signed for something else, or others may have signed with it', async (t) => {
    const shop = await aShop(t)
    const told = async (memo: string) => {
      const { node, db, orders } = shop
      const ask = { amountMsat: 1_000, memo, expirySeconds: 600 }
      const { bolt11, paymentHash } = await node.simulator.createInvoice(ask)
      return orders.recover(bolt11, await preimageIn(db, paymentHash), async () => undefined)
    }
    const notFound = { kind: 'order not found' }
    assert.deepEqual(await told('Mayfly CAFE spark'), notFound)
    assert.deepEqual(alarmsOf(shop), [])
    assert.deepEqual(await told('Mayfly CATCH spark'), notFound)
    assert.equal(alarmsOf(shop).length, 1)
    shop.node.replaced.info = async () => ({ network: 'regtest', synced: true, nodeId: null })
    const asking = new AbortController()
    await shop.health.start(asking.signal)
    asking.abort()
    assert.deepEqual(await told('Mayfly CATCH spark'), notFound)
    assert.equal(alarmsOf(shop).length, 1)
  })

  test('is counted before a signature is checked, which takes long: anybody can sign invoices', async (t) => {
    const server = await limited(t, { badBearer: { perMinute: 3, burst: 3 } })
    const { bolt11, preimage } = await paid(server)
    await lose(server)
    const preimages = Array.from({ length: 3 }, () => randomBytes(32))
    for (const secret of preimages) {
      const paymentHash = hash('sha256', secret, 'hex')
      const ofStranger = forged({ bolt11 }, paymentHash)
      const answer = await recover(server, { bolt11: ofStranger, preimage: secret.toString('hex') })
      assert.deepEqual(answer.status, 404)
    }
    assert.equal((await recover(server, { bolt11, preimage })).status, 429)
    assert.deepEqual(alarms(server), [])
  })

  test('is limited like wrong tokens, and whoever proves the payment is not', async (t) => {
    const server = await limited(
      t,
      { badBearer: { perMinute: 3, burst: 3 } },
      { MAYFLY_TRUSTED_PROXIES: '127.0.0.1' },
    )
    const { bolt11, preimage } = await paid(server)
    const right = () => recover(server, { bolt11, preimage })
    const wrong = () => recover(server, { bolt11, preimage: '00'.repeat(32) })
    for (let i = 0; i < 5; i++) capabilityOf(await right())
    for (let i = 0; i < 3; i++) assert.deepEqual(await wrong(), NOT_FOUND)
    const refused = await wrong()
    assert.equal(refused.status, 429)
    assert.match(refused.lines('retry-after').join(), /^[1-9]\d*$/)
    capabilityOf(await right())
  })

  test('is refused before the store is asked if it has another form, or is no POST', async (t) => {
    const server = await startServer(t)
    const { bolt11, preimage } = await paid(server)
    const forms: unknown[] = [
      { bolt11 },
      { preimage },
      { bolt11, preimage: preimage.slice(1) },
      { bolt11, preimage, more: 1 },
      { bolt11: '', preimage },
      { bolt11: 'l'.repeat(8_000), preimage },
      { bolt11: [bolt11], preimage },
      null,
    ]
    for (const form of forms) {
      const { status, text } = await post(server, form)
      assert.equal(status, 400, JSON.stringify(form))
      assert.equal(JSON.parse(text).error, 'invalid request body')
      assert.ok(!text.includes(preimage.slice(1)) && !text.includes(bolt11))
    }
    const asked = await send(`${server.url}${PATH}?preimage=${preimage}`, {
      method: 'GET',
      headers: {},
      body: '',
    })
    assert.deepEqual([asked.status, asked.header('allow')], [405, 'POST'])
  })

  test('neither stands in the log', async (t) => {
    const server = await startServer(t, { MAYFLY_LOG_LEVEL: 'debug' })
    const { bolt11, preimage } = await paid(server)
    await recover(server, { bolt11, preimage: '00'.repeat(32) })
    await recover(server, { bolt11: 'x', preimage })
    await lose(server)
    await recover(server, { bolt11, preimage })
    assert.equal(alarms(server).length, 1)
    const log = server.logged.join('')
    for (const secret of [bolt11, preimage, '00'.repeat(32)]) assert.ok(!log.includes(secret))
  })
})
