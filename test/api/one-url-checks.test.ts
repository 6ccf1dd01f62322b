/** Purchases of one URL as order-of-checks.md tells them: each cell of its table is asked for here. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, suite, test } from 'node:test'
import type { Answer } from '../support/buying.ts'
import {
  FLOWS,
  type Look,
  look,
  type Opened,
  offerOf,
  opened,
  rowOf,
  type Scheme,
} from '../support/one-url.ts'
import type { TestServer } from '../support/server.ts'
import { query } from '../support/store.ts'
import { tablesOf } from '../support/tables.ts'
import { capabilityOf, startShop, use } from '../support/wallet-flow.ts'

const page = await readFile(new URL('order-of-checks.md', import.meta.url), 'utf8')
const [TABLE = []] = tablesOf(page.slice(page.indexOf('**Purchases of one URL.**')))

/** An end of a moment ago. The server deletes an order whose end is long past while the test looks at it. */
const ended = (server: TestServer) => `expires_at = ${server.now()}`

type Become = (server: TestServer, order: Opened) => Promise<unknown>

/** What makes an order stand as a row says. */
const STATES: Record<string, Become> = {
  pending: async () => undefined,
  dead: set(`state = 'dead'`),
  paid: settle,
  delivered: collect,
  'used once': async (server, order) => use(server, await collect(server, order)),
  'sealed by age': async (server, order) => {
    await collect(server, order)
    await set(`seed = null, sealed_at = 1, sealed_by = 'age'`)(server, order)
  },
  'handed out by the operator': set(
    `state = 'settled', settled_at = 1, delivered_at = 1, sealed_at = 1, expires_at = 99999999999999`,
  ),
  expired: async (server, order) => {
    await collect(server, order)
    await set(`seed = null, sealed_at = 1, sealed_by = 'age', ${ended(server)}`)(server, order)
  },
  'never collected': async (server, order) => {
    await settle(server, order)
    await set(ended(server))(server, order)
  },
  'paid, unfulfilled': set(`state = 'paid_unfulfilled'`),
  refunded: set(`state = 'refunded', sealed_at = 1`),
  lost: forget,
  'forgotten, with a tombstone': async (server, order) => {
    await forget(server, order)
    const bury = `insert into order_tombstone values ($1, 'aged', 1)`
    await query(server, bury, order.paymentHash)
  },
}

const LOOKS: Record<string, (order: Opened) => Look> = {
  'wrong preimage': ({ wrong }) => ({ authorization: wrong }),
  'valid credential': ({ authorization }) => ({ authorization }),
  'valid credential, HEAD': ({ authorization }) => ({ authorization, method: 'HEAD' }),
  '`Payment-Preimage` alone': ({ preimage }) => ({ headers: { 'payment-preimage': preimage } }),
}

for (const scheme of FLOWS) {
  suite(`the checks of a purchase of one URL, in the ${scheme} flow`, () => {
    const starting = startShop({ after })
    for (const { state, cells } of TABLE) {
      test(`a credential of an order that is ${state} is answered at its URL as order-of-checks.md says`, async () => {
        const server = await starting
        for (const [column, expected] of cells) {
          const order = await opened(server, scheme)
          const become = STATES[state]
          const ask = LOOKS[column]?.(order)
          assert.ok(become && ask, `${state}: ${column}`)
          await become(server, order)
          const before =
            state.includes('tombstone') || state === 'lost' ? null : await rowOf(server, order)
          const answer = await look(server, ask)
          await assertMeets(server, answer, { expected, order, scheme })
          if (before && ask.method === 'HEAD') {
            const { delivered_at, sealed_at, seed } = await rowOf(server, order)
            const { delivered_at: was, sealed_at: wasSealed } = before
            assert.deepEqual([delivered_at, sealed_at], [was, wasSealed], column)
            assert.ok(expected !== '200, no body' || seed, 'the next GET delivers')
          }
        }
      })
    }
  })
}

test('the table of one URL in order-of-checks.md is there, and has a cell for everything', () => {
  assert.deepEqual(TABLE.map(({ state }) => state).sort(), Object.keys(STATES).sort())
  for (const { cells } of TABLE) {
    assert.deepEqual(
      cells.map(([column]) => column),
      Object.keys(LOOKS),
    )
  }
})

async function assertMeets(
  server: TestServer,
  answer: Answer,
  { expected, order, scheme }: { expected: string; order: Opened; scheme: Scheme },
): Promise<void> {
  const note = `${expected}: ${answer.status} ${answer.text}`
  if (expected === '401 bare') {
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

function set(change: string): Become {
  return async (server, { paymentHash }) => {
    const text = `update purchase_order set ${change} where payment_hash = $1`
    await query(server, text, paymentHash)
  }
}

/** A HEAD with the right credential settles, and delivers nothing. */
async function settle(server: TestServer, order: Opened): Promise<void> {
  await look(server, { method: 'HEAD', authorization: order.authorization })
  const { state, delivered_at } = await rowOf(server, order)
  assert.deepEqual([state, delivered_at], ['settled', null])
}

async function collect(server: TestServer, { authorization }: Opened): Promise<Answer> {
  const answer = await look(server, { authorization })
  capabilityOf(answer)
  return answer
}

async function forget(server: TestServer, { paymentHash }: Opened): Promise<void> {
  await query(server, 'delete from purchase_order where payment_hash = $1', paymentHash)
}
