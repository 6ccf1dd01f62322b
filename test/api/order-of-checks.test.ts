/** The order of checks as order-of-checks.md tells it: each cell of its tables is asked for here. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { after, suite, test } from 'node:test'
import { type Answer, type Ask, poll, purchase, quoteOf, send } from '../support/buying.ts'
import type { TestServer } from '../support/server.ts'
import { query } from '../support/store.ts'
import { tablesOf } from '../support/tables.ts'
import { until } from '../support/until.ts'
import {
  assertBareRefusal,
  assertError,
  capabilityOf,
  L402,
  openOrderVia,
  PAYMENT,
  startShop,
  use,
  type WalletFlow,
} from '../support/wallet-flow.ts'

type Order = Awaited<ReturnType<typeof openOrderVia>>
type Shop = { server: TestServer; flow: WalletFlow; other: Order }

const HOME = '203.0.113.1'
const ELSEWHERE = '198.51.100.9'
const QUERY = '/api/payments/catch?attempt=2'

const page = await readFile(new URL('order-of-checks.md', import.meta.url), 'utf8')
const [OWN_KEY, OTHER_KEY, POLL] = tablesOf(
  page.slice(0, page.indexOf('**Purchases of one URL.**')),
)

/** What makes an order stand as a row says. */
const STATES: Record<string, (shop: Shop, order: Order) => Promise<unknown>> = {
  pending: async () => undefined,
  'pending, contested': contest,
  dead: ({ server }, order) => set(server, order, `state = 'dead'`),
  paid: pay,
  'paid, contested': async (shop, order) => {
    await contest(shop, order)
    await pay(shop, order)
  },
  delivered: collect,
  'delivered, contested': async (shop, order) => {
    await contest(shop, order)
    await pay(shop, order)
    capabilityOf(await purchase(shop.server, { ...order.ask, from: HOME }))
  },
  sealed: async (shop, order) => use(shop.server, await collect(shop, order)),
  'never collected': async (shop, order) => {
    await pay(shop, order)
    // A moment ago: the server deletes an order whose end is long past while the test looks at it.
    await set(shop.server, order, `expires_at = ${shop.server.now()}`)
  },
  'paid, unfulfilled': ({ server }, order) => set(server, order, `state = 'paid_unfulfilled'`),
  refunded: ({ server }, order) => set(server, order, `state = 'refunded', sealed_at = 1`),
  lost: ({ server }, { orderId }) =>
    query(server, 'delete from purchase_order where order_id = $1', orderId),
  'forgotten, with a tombstone': async ({ server }, { orderId, paymentHash }) => {
    await query(server, 'delete from purchase_order where order_id = $1', orderId)
    const bury = `insert into order_tombstone values ($1, 'used', 1)`
    await query(server, bury, paymentHash)
  },
}

/** What a purchase comes with. */
const PURCHASES: Record<string, (shop: Shop, order: Order) => Ask> = {
  nothing: ({ flow }) => ({ protocol: flow.protocol }),
  'nothing, from elsewhere': ({ flow }) => ({ protocol: flow.protocol, from: ELSEWHERE }),
  'invalid credential': ({ flow }) => ({
    authorization: flow === PAYMENT ? 'Payment e30' : 'L402 bad',
  }),
  'wrong preimage': ({ flow }, { challenge }) => ({
    authorization: flow.credential(challenge, '00'.repeat(32)),
  }),
  'valid credential': (_, { authorization }) => ({ authorization }),
  'its credential, another query': (_, { authorization }) => ({ authorization, target: QUERY }),
  'valid credential, another query': (_, { authorization }) => ({ authorization, target: QUERY }),
  'credential of another open order': ({ other }) => ({ authorization: other.authorization }),
  '`Payment-Preimage`': (_, { preimage }) => ({ headers: { 'payment-preimage': preimage } }),
  '`Payment-Preimage` alone': (_, { preimage }) => ({ headers: { 'payment-preimage': preimage } }),
}

/** What a poll comes with. */
const POLLS: Record<string, (order: Order) => Record<string, string>> = {
  'id alone': () => ({}),
  'with the key': ({ key }) => ({ 'idempotency-key': key }),
  'with `Payment-Preimage` alone': ({ preimage }) => ({ 'payment-preimage': preimage }),
  'with both': ({ key, preimage }) => ({ 'idempotency-key': key, 'payment-preimage': preimage }),
}

for (const [name, flow] of Object.entries({ Payment: PAYMENT, L402 })) {
  suite(`the order of checks, in the ${name} flow`, () => {
    const starting = startShop({ after }, { MAYFLY_TRUSTED_PROXIES: '127.0.0.1' })
    for (const { state, cells } of OWN_KEY ?? []) {
      test(`a purchase with the key of an order that is ${state} is answered as order-of-checks.md says`, async () => {
        const server = await starting
        for (const [column, expected] of cells) {
          const { shop, order } = await anOrderThatIs(state, server, flow)
          const ask = PURCHASES[column]?.(shop, order)
          assert.ok(ask, column)
          const answer = await purchase(server, { key: order.key, from: HOME, ...ask })
          const paidFor = expected.startsWith('→') ? shop.other : order
          await assertMeets(shop, answer, { expected, order: paidFor })
        }
      })
    }
    for (const { state, cells } of OTHER_KEY ?? []) {
      test(`a purchase with the credential of an order that is ${state}, under a key of no order, is answered as order-of-checks.md says`, async () => {
        const server = await starting
        for (const [column, expected] of cells) {
          const { shop, order } = await anOrderThatIs(state, server, flow)
          const ask = PURCHASES[column]?.(shop, order)
          assert.ok(ask, column)
          const answer = await purchase(server, { key: randomUUID(), from: HOME, ...ask })
          await assertMeets(shop, answer, { expected, order })
        }
      })
    }
    for (const { state, cells } of POLL ?? []) {
      test(`a poll of an order that is ${state} is answered as order-of-checks.md says`, async () => {
        const server = await starting
        for (const [column, expected] of cells) {
          const { shop, order } = await anOrderThatIs(state, server, flow)
          const headers = POLLS[column]?.(order)
          assert.ok(headers, column)
          const answer = await send(`${server.url}/api/payments/${order.orderId}`, {
            method: 'GET',
            body: '',
            headers: { 'x-forwarded-for': ELSEWHERE, ...headers },
          })
          await assertMeets(shop, answer, { expected, order })
        }
      })
    }
  })
}

test('the tables of order-of-checks.md are there, and have a cell for everything', () => {
  const size = (table: typeof OWN_KEY): number[] => [
    table?.length ?? 0,
    table?.[0]?.cells.length ?? 0,
  ]
  assert.deepEqual([OWN_KEY, OTHER_KEY, POLL].map(size), [
    [11, 7],
    [9, 4],
    [11, 4],
  ])
})

async function assertMeets(
  shop: Shop,
  answer: Answer,
  { expected, order }: { expected: string; order: Order },
): Promise<void> {
  const { flow } = shop
  const note = `${expected}: ${answer.text}`
  const [, status = '', phrase] = /^(\d+)(?: (\D+))?$/.exec(expected) ?? []
  if (expected === '401 bare') return assertBareRefusal(answer, flow, note)
  if (expected === '200' || expected === '→ its order') {
    capabilityOf(answer)
    // It is this order's: the row that was handed over has its public id.
    const [row] = await query(
      shop.server,
      'select order_id from purchase_order where public_id = $1',
      capabilityOf(answer).publicId,
    )
    return assert.equal(row?.order_id, order.orderId, note)
  }
  if (expected === '402 or 401' || expected === 'its challenge') {
    assert.equal(answer.status, flow === PAYMENT ? 402 : 401, note)
    return assert.equal(quoteOf(answer).paymentHash, order.paymentHash, note)
  }
  if (expected === 'new') {
    // A bad L402 credential is 401 with the challenge, also where it is one of a new order.
    assert.ok(answer.status === 402 || (answer.status === 401 && flow === L402), note)
    return assert.notEqual(quoteOf(answer).paymentHash, order.paymentHash, note)
  }
  if (phrase === 'with proofRequired' || expected === '402') {
    assert.equal(answer.status, 402, note)
    const { proofRequired } = JSON.parse(answer.text) as { proofRequired?: true }
    return assert.equal(proofRequired, phrase ? true : undefined, note)
  }
  assert.ok(phrase, note)
  assertError(answer, `${Number(status)} ${phrase}`, note)
}

/** An order as a row says, and another one that waits for its payment. */
async function anOrderThatIs(state: string, server: TestServer, flow: WalletFlow) {
  const shop: Shop = { server, flow, other: await openOrderVia(server, flow, { from: HOME }) }
  const order = await openOrderVia(server, flow, { from: HOME })
  const become = STATES[state]
  assert.ok(become, state)
  await become(shop, order)
  return { shop, order }
}

/** Another client asks for the order under the same key, and sees its quote. */
async function contest({ server, flow }: Shop, { key }: Order): Promise<void> {
  const seen = await purchase(server, { key, protocol: flow.protocol, from: ELSEWHERE })
  assert.equal(seen.status, 402)
}

async function pay({ server }: Shop, { bolt11, paymentHash }: Order): Promise<void> {
  const isSettled = (line: string): boolean =>
    line.includes('"order.settled"') && line.includes(paymentHash)
  await server.pay(bolt11)
  await until('the settlement', () => server.logged.some(isSettled))
}

async function collect(shop: Shop, order: Order): Promise<Answer> {
  await pay(shop, order)
  const answer = await poll(shop.server, order.orderId)
  capabilityOf(answer)
  return answer
}

async function set(server: TestServer, { orderId }: Order, change: string): Promise<void> {
  await query(server, `update purchase_order set ${change} where order_id = $1`, orderId)
}
