/** Extending an inbox and a monitor before they end: what is added, to what, and by which payment. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import { phraseOf } from '../support/answer.ts'
import { pollExtension as poll, purchase, quoteOf } from '../support/buying.ts'
import { send } from '../support/catch.ts'
import {
  assertExtended,
  EXTENDABLE,
  endIn,
  extend,
  type Held,
  paidExtension,
  pathOf,
  repeat,
  SPARK_MS,
  statusOf,
} from '../support/extension.ts'
import { startServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { query } from '../support/store.ts'
import { L402, PAYMENT } from '../support/wallet-flow.ts'

const DAY = SPARK_MS

for (const product of EXTENDABLE) {
  const { name, buy, limits } = product

  describe(`extending by ${name}`, () => {
    const theServer = shareServer()

    test('a paid extension adds the time and the limits of the plan, and its answer has no token', async () => {
      const server = await theServer()
      const held = await buy(server)
      const { orderId, key } = await paidExtension(server, held)
      const answer = await poll(server, orderId)
      const expected = new Date(Date.parse(held.expiresAt) + DAY).toISOString()
      assert.equal(endIn(answer), expected)
      await assertExtended(server, { held, limits, times: 1 })
      // The owner token was used, and still the answer can be repeated, also at the address of purchases.
      assert.equal((await repeat(server, held, { key })).text, answer.text)
      const elsewhere = await fetch(`${server.url}/api/payments/${orderId}`, {
        headers: { 'idempotency-key': key },
      })
      assert.equal(await elsewhere.text(), answer.text)
    })

    test('an extension that is opened with the owner token ends the repeats of the sale', async () => {
      const server = await theServer()
      const target = `/api/payments/${name}`
      const key = randomUUID()
      await server.pay(quoteOf(await purchase(server, { key, target })).bolt11)
      const sold = await purchase(server, { key, target })
      const held: Held = JSON.parse(sold.text).resource
      assert.equal((await purchase(server, { key, target })).text, sold.text)
      const asked = await extend(server, held)
      assert.equal(asked.status, 402)
      const { description } = decodeInvoice(quoteOf(asked).bolt11)
      assert.equal(description, `Mayfly ${name.toUpperCase()} spark extension`)
      assert.equal(phraseOf(await purchase(server, { key, target })), '404 already delivered')
    })

    test('an unpaid quote extends nothing, and twenty repeats by key, poll and preimage extend once', async () => {
      const server = await theServer()
      const held = await buy(server)
      const unpaid = quoteOf(await extend(server, held))
      const wrong = { 'payment-preimage': '00'.repeat(32) }
      assert.equal((await poll(server, unpaid.orderId, wrong)).status, 402)
      await assertExtended(server, { held, limits, times: 0 })
      const { orderId, key, preimage } = await paidExtension(server, held)
      const proof = { 'payment-preimage': preimage }
      const keyed = { 'idempotency-key': key, ...proof }
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          i % 3 === 0
            ? repeat(server, held, { key })
            : i % 3 === 1
              ? poll(server, orderId, keyed)
              : extend(server, held, { key, headers: proof }),
        ),
      )
      assert.equal(new Set(answers.map(endIn)).size, 1)
      await assertExtended(server, { held, limits, times: 1 })
    })

    for (const flow of [PAYMENT, L402]) {
      test(`a ${flow.protocol} credential extends its own target alone, without the owner token and whatever key it comes with`, async () => {
        const server = await theServer()
        const [held, other] = [await buy(server), await buy(server)]
        const target = `/api/payments/${name}`
        const bought = await purchase(server, { target, protocol: flow.protocol })
        const spent = flow.credential(bought, await server.pay(quoteOf(bought).bolt11))
        assert.equal((await extend(server, held, { authorization: spent })).status, 402)

        const key = randomUUID()
        const challenge = await extend(server, held, { key, protocol: flow.protocol })
        const preimage = await server.pay(quoteOf(challenge).bolt11)
        const authorization = flow.credential(challenge, preimage)
        const withKey = await repeat(server, other, { key, authorization })
        assert.equal(phraseOf(withKey), '400 idempotency key reused with a different request')
        assert.equal((await repeat(server, other, { authorization })).status, 401)
        const asked = await extend(server, other, { authorization })
        assert.notEqual(quoteOf(asked).paymentHash, quoteOf(challenge).paymentHash)
        assert.equal((await purchase(server, { authorization, target })).status, 402)
        await assertExtended(server, { held: other, limits, times: 0 })

        const first = await repeat(server, held, { key, authorization })
        endIn(first)
        assert.equal((await repeat(server, held, { authorization })).text, first.text)
        await assertExtended(server, { held, limits, times: 1 })
      })
    }

    test('two extensions that are paid at the same time both count', async () => {
      const server = await theServer()
      const held = await buy(server)
      const paid = await Promise.all([1, 2, 3].map(() => paidExtension(server, held)))
      const ends = await Promise.all(
        paid.map(async ({ orderId, preimage }) =>
          endIn(await poll(server, orderId, { 'payment-preimage': preimage })),
        ),
      )
      const days = ends.map((end) => (Date.parse(end) - Date.parse(held.expiresAt)) / DAY)
      assert.deepEqual(days.sort(), [1, 2, 3])
      await assertExtended(server, { held, limits, times: 3 })
    })

    test('only the owner token opens an order, and only for its own plan', async (t) => {
      const server = await startServer(t)
      const [held, other] = [await buy(server), await buy(server)]
      const refusals: [string, Parameters<typeof purchase>[1]][] = [
        ['401 unauthorized', {}],
        ['401 unauthorized', { headers: { 'x-owner-token': 'x' } }],
        ['401 unauthorized', { authorization: `Bearer ${held.ownerToken}` }],
        ['404 not found', { headers: { 'x-owner-token': other.ownerToken } }],
        [
          '400 invalid plan',
          { headers: { 'x-owner-token': held.ownerToken }, body: '{"planId":"long"}' },
        ],
        [
          '404 not found',
          {
            headers: { 'x-owner-token': held.ownerToken },
            target: pathOf({ ...held, publicId: 'x' }),
          },
        ],
      ]
      for (const [phrase, ask] of refusals) {
        assert.equal(phraseOf(await purchase(server, { target: pathOf(held), ...ask })), phrase)
      }
      assert.deepEqual(await openExtensions(server), [])
    })

    test('nothing lasts longer than ten years from now, whatever is quoted already', async (t) => {
      const server = await startServer(t)
      const held = await buy(server)
      const table = name === 'catch' ? 'catch_inbox_use' : 'pulse_monitor'
      const end = server.now() + (10 * 365 - 1.5) * DAY
      await query(
        server,
        `update ${table} set expires_at = $1 returning expires_at`,
        Math.round(end),
      )
      const key = randomUUID()
      const quote = quoteOf(await extend(server, held, { key }))
      // Paid, the open quote would leave no room for another day.
      assert.equal(phraseOf(await extend(server, held)), '409 cannot be extended')
      await query(
        server,
        `update ${table} set expires_at = $1 returning expires_at`,
        Math.round(end + DAY),
      )
      // It cannot be added any more, so its buyer gets the plan anew.
      const proof = {
        'idempotency-key': key,
        'payment-preimage': await server.pay(quote.bolt11),
      }
      const { resource } = JSON.parse((await poll(server, quote.orderId, proof)).text)
      assert.notEqual(resource.publicId, held.publicId)
    })

    test('it lives on past its first end, also where its end was remembered', async (t) => {
      const server = await startServer(t)
      const held = await buy(server)
      assert.equal(await use(server, held), 204)
      const { orderId } = await paidExtension(server, held)
      endIn(await poll(server, orderId))
      server.clock.advance(1.5 * DAY)
      assert.equal(await use(server, held), 204)
      assert.ok(await statusOf(server, held))
      server.clock.advance(DAY)
      assert.notEqual(await use(server, held), 204)
    })

    test('the owner token of a quote is in no log line, no answer and no column', async (t) => {
      const server = await startServer(t, { MAYFLY_LOG_LEVEL: 'trace' })
      const held = await buy(server)
      const answer = await extend(server, held)
      const quote = quoteOf(answer)
      await server.pay(quote.bolt11)
      endIn(await poll(server, quote.orderId))
      assert.ok(!answer.whole.includes(held.ownerToken))
      assert.ok(!server.logged.join('').includes(held.ownerToken))
      const rows = await query(server, 'select * from purchase_order')
      assert.ok(!JSON.stringify(rows).includes(held.ownerToken))
    })
  })

  async function use(server: { url: string }, held: Held): Promise<number> {
    if (name === 'catch') return (await send(server, held, { method: 'POST' })).status
    const { pingToken } = held as Held & { pingToken: string }
    const answer = await fetch(`${server.url}/p/${held.publicId}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${pingToken}` },
    })
    return answer.status
  }
}

const openExtensions = (server: Parameters<typeof query>[0]) =>
  query(server, 'select order_id from purchase_order where extends_id is not null')
