/** The order of checks as order-of-checks.md tells it: each cell of its tables is asked for here. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { after, suite, test } from 'node:test'
import { type Answer, type Ask, poll, purchase, quoteOf, send } from '../support/buying.ts'
import { type Look, look, type Opened, offerOf, opened, rowOf } from '../support/one-url.ts'
import type { TestServer } from '../support/server.ts'
import { query } from '../support/store.ts'
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
const [OWN_KEY = [], OTHER_KEY = [], POLL = [], ONE_URL = []] = tablesOf(page)

type Become<Kind> = (shop: Shop, order: Kind) => Promise<unknown>

/** What makes any order stand as a row says. */
const EITHER: Record<string, Become<{ paymentHash: string }>> = {
  pending: async () => undefined,
  dead: set(`state = 'dead'`),
  'paid, unfulfilled': set(`state = 'paid_unfulfilled'`),
  refunded: set(`state = 'refunded', sealed_at = 1`),
  lost: forget,
  'forgotten, with a tombstone': async (shop, order) => {
    await forget(shop, order)
    const bury = `insert into order_tombstone values ($1, 'used', 1)`
    await query(shop.server, bury, order.paymentHash)
  },
}

/** An end of a moment ago: the server deletes an order whose end is long past while the test looks at it. */
const ended = ({ server }: Shop) => `expires_at = ${server.now()}`

/** What makes an order stand as a row says. */
const STATES: Record<string, Become<Order>> = {
  ...EITHER,
  'pending, contested': contest,
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
    await set(ended(shop))(shop, order)
  },
}

/** The same of a purchase of one URL. */
const STATES_OF_ONE_URL: Record<string, Become<Opened>> = {
  ...EITHER,
  paid: settleByUrl,
  delivered: collectByUrl,
  'used once': async (shop, order) => use(shop.server, await collectByUrl(shop, order)),
  'sealed by age': async (shop, order) => {
    await collectByUrl(shop, order)
    await set(`seed = null, sealed_at = 1, sealed_by = 'age'`)(shop, order)
  },
  'handed out by the operator': set(
    `state = 'settled', settled_at = 1, delivered_at = 1, sealed_at = 1, expires_at = 99999999999999`,
  ),
  expired: async (shop, order) => {
    await collectByUrl(shop, order)
    await set(`seed = null, sealed_at = 1, sealed_by = 'age', ${ended(shop)}`)(shop, order)
  },
  'never collected': async (shop, order) => {
    await settleByUrl(shop, order)
    await set(ended(shop))(shop, order)
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

/** What a purchase of one URL comes with. */
const LOOKS: Record<string, (order: Opened) => Look> = {
  'wrong preimage': ({ wrong }) => ({ authorization: wrong }),
  'valid credential': ({ authorization }) => ({ authorization }),
  'valid credential, HEAD': ({ authorization }) => ({ authorization, method: 'HEAD' }),
  '`Payment-Preimage` alone': ({ preimage }) => ({ headers: { 'payment-preimage': preimage } }),
}

for (const [name, flow] of Object.entries({ Payment: PAYMENT, L402 })) {
  suite(`the order of checks, in the ${name} flow`, () => {
    const starting = startShop({ after }, { MAYFLY_TRUSTED_PROXIES: '127.0.0.1' })
    for (const { state, cells } of OWN_KEY) {
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
    for (const { state, cells } of OTHER_KEY) {
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
    for (const { state, cells } of POLL) {
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
    for (const { state, cells } of ONE_URL) {
      test(`a credential of an order that is ${state} is answered at its URL as order-of-checks.md says`, async () => {
        const shop = await aShopOf(await starting, flow)
        for (const [column, expected] of cells) {
          const order = await opened(shop.server, flow === PAYMENT ? 'Payment' : 'L402')
          const become = STATES_OF_ONE_URL[state]
          const ask = LOOKS[column]?.(order)
          assert.ok(become && ask, `${state}: ${column}`)
          await become(shop, order)
          const [before] = await rowsOf(shop, order)
          await assertMeetsAtUrl(shop, await look(shop.server, ask), { expected, order })
          if (!before || ask.method !== 'HEAD') continue
          const { delivered_at, sealed_at, seed } = await rowOf(shop.server, order)
          const was = [before.delivered_at, before.sealed_at]
          assert.deepEqual([delivered_at, sealed_at], was, column)
          assert.ok(expected !== '200, no body' || seed, 'the next GET delivers')
        }
      })
    }
  })
}

test('the tables of order-of-checks.md are there, and have a cell for everything', () => {
  const sizes = [OWN_KEY, OTHER_KEY, POLL].map((table) => [table.length, table[0]?.cells.length])
  assert.deepEqual(sizes, [
    [11, 7],
    [9, 4],
    [11, 4],
  ])
  assert.deepEqual(ONE_URL.map(({ state }) => state).sort(), Object.keys(STATES_OF_ONE_URL).sort())
  for (const { cells } of ONE_URL) {
    assert.deepEqual(
      cells.map(([column]) => column),
      Object.keys(LOOKS),
    )
  }
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

async function assertMeetsAtUrl(
  { server, flow }: Shop,
  answer: Answer,
  { expected, order }: { expected: string; order: Opened },
): Promise<void> {
  const note = `${expected}: ${answer.status} ${answer.text}`
  if (expected === '401 bare') {
    const scheme = flow === PAYMENT ? 'Payment' : 'L402'
    assert.equal(answer.status, 401, note)
    return assert.deepEqual(answer.lines('www-authenticate'), [`${scheme} realm="localhost"`], note)
  }
  if (expected === '200') {
    const { public_id } = await rowOf(server, order)
    return assert.equal(capabilityOf(answer).publicId, public_id, note)
  }
  if (expected === '200, no body') {
    // Its length is not known, so none is told (RFC 9110 §8.6).
    const told = [answer.status, answer.text, answer.header('content-length')]
    return assert.deepEqual(told, [200, '', null])
  }
  if (expected === 'its challenge') {
    return assert.equal(offerOf(answer).paymentHash, order.paymentHash, note)
  }
  if (expected === 'new' && answer.text === '') {
    assert.equal(answer.status, 402, note)
    const shown = answer.lines('www-authenticate').join()
    return assert.ok(shown !== '' && !shown.includes(order.bolt11), note)
  }
  if (expected === 'new') {
    return assert.notEqual(offerOf(answer).paymentHash, order.paymentHash, note)
  }
  const [, status, phrase] = /^(\d+) (\D+)$/.exec(expected) ?? []
  assert.equal(answer.status, Number(status), note)
  assert.deepEqual(answer.lines('www-authenticate'), [], note)
  if (answer.text !== '') assert.deepEqual(JSON.parse(answer.text), { error: phrase }, note)
}

async function aShopOf(server: TestServer, flow: WalletFlow): Promise<Shop> {
  return { server, flow, other: await openOrderVia(server, flow, { from: HOME }) }
}

/** An order as a row says, and another one that waits for its payment. */
async function anOrderThatIs(state: string, server: TestServer, flow: WalletFlow) {
  const shop = await aShopOf(server, flow)
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

/** A HEAD with the right credential settles, and delivers nothing. */
async function settleByUrl({ server }: Shop, order: Opened): Promise<void> {
  await look(server, { method: 'HEAD', authorization: order.authorization })
  const { state, delivered_at } = await rowOf(server, order)
  assert.deepEqual([state, delivered_at], ['settled', null])
}

async function collectByUrl({ server }: Shop, { authorization }: Opened): Promise<Answer> {
  const answer = await look(server, { authorization })
  capabilityOf(answer)
  return answer
}

function set(change: string): Become<{ paymentHash: string }> {
  const text = `update purchase_order set ${change} where payment_hash = $1`
  return ({ server }, { paymentHash }) => query(server, text, paymentHash)
}

const rowsOf = ({ server }: Shop, { paymentHash }: { paymentHash: string }) =>
  query(server, 'select * from purchase_order where payment_hash = $1', paymentHash)

async function forget({ server }: Shop, { paymentHash }: { paymentHash: string }): Promise<void> {
  await query(server, 'delete from purchase_order where payment_hash = $1', paymentHash)
}

/** The tables of a text: an entry for each state of each row, with the row's cells by their columns. */
function tablesOf(text: string): { state: string; cells: [column: string, cell: string][] }[][] {
  return text.split('\n\n').flatMap((block) => {
    if (!block.startsWith('|')) return []
    const [head = [], , ...rows] = block
      .trim()
      .split('\n')
      .map((line) =>
        line
          .slice(1, -1)
          .split('|')
          .map((cell) => cell.trim()),
      )
    return [
      rows.flatMap(([states = '', ...cells]) =>
        states.split('; ').map((state) => ({
          state,
          cells: cells.map((_, i): [string, string] => [head[i + 1] ?? '', answerAt(cells, i)]),
        })),
      ),
    ]
  })
}

/** An empty cell has the answer of the nearest one to its left. */
function answerAt(cells: string[], i: number): string {
  return cells.slice(0, i + 1).findLast((cell) => cell !== '') ?? ''
}
