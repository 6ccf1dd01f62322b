/**
 * What each statement about an order changes, of which order, and what refuses it, as one table. Beside each order
 * stands another one in the same state, which no statement may touch.
 */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { attempt, type Row, type Statement } from '../../src/db/db.ts'
import { dropOpening, invoiceOrder, reclaimOrder } from '../../src/payment/opening.ts'
import {
  CONTESTED,
  claimLookup,
  claimSweep,
  confirmDead,
  contestOrder,
  deliverOrder,
  failSettlement,
  killOrder,
  resealOrder,
  sealDelivery,
  settleOrder,
} from '../../src/payment/store.ts'
import { OTHER_KEY } from '../support/orders.ts'
import { aShop, KEY } from '../support/shop.ts'
import { unit } from '../support/unit.ts'

const NOW = 1_000_000
const CLOCKS_APART_MS = 60_000
const [SEED, NEW_SEED] = [new Uint8Array(4).fill(1), new Uint8Array(4).fill(2)]
const INVOICE = {
  ...{ network: 'signet' as const, bolt11: 'lntbs1', payment_hash: 'ee'.repeat(32) },
  quote_expires_at: NOW,
}

type Case = {
  statement: (orderId: string) => Statement
  /** The state of both orders, as assignments of SQL. */
  given: string
  /** What the statement changes; null: it deletes the row. */
  changes: Record<string, unknown> | null
  /** Assignments to the order that refuse the statement. */
  refusals: string[]
  /** Assignments to the order after which the statement changes the same. */
  alike?: string[]
}

const settled = {
  ...{ settled_at: NOW, settled_by: 'lookup' as const, public_id: 'catch_new', seed: SEED },
  ...{ expires_at: NOW + 1, delivered_at: NOW + 2 },
}
const SETTLED = `state = 'settled', settled_at = 1, expires_at = ${NOW + 1}`

const STATEMENTS: Record<string, Case> = {
  'settling an order': {
    statement: (id) => settleOrder(id, settled),
    given: `state = 'pending'`,
    changes: { ...settled, state: 'settled' },
    refusals: ['settled', 'opening', 'paid_unfulfilled', 'refunded'].map(
      (state) => `state = '${state}'`,
    ),
    alike: [`state = 'dead'`],
  },
  'settling an order that is owed': {
    statement: (id) => settleOrder(id, settled, true),
    given: `state = 'paid_unfulfilled', settled_at = 7`,
    changes: { ...settled, state: 'settled', unfulfilled_at: 7 },
    refusals: [`state = 'refunded'`, `state = 'settled'`],
  },
  'noting that an order is owed': {
    statement: (id) => failSettlement(id, NOW, 'stream'),
    given: `state = 'pending'`,
    changes: { state: 'paid_unfulfilled', settled_at: NOW, settled_by: 'stream' },
    refusals: [`state = 'settled'`, `state = 'opening'`, `state = 'refunded'`],
    alike: [`state = 'dead'`],
  },
  'ending an order': {
    statement: (id) => killOrder(id, true),
    given: `state = 'pending'`,
    changes: { state: 'dead', is_dead_final: 1 },
    refusals: [`state = 'settled'`, `state = 'dead'`, `state = 'paid_unfulfilled'`],
  },
  'confirming that an order is dead': {
    statement: confirmDead,
    given: `state = 'dead', is_dead_final = 0`,
    changes: { is_dead_final: 1 },
    refusals: [`state = 'pending'`, 'is_dead_final = 2'],
  },
  'delivering an order': {
    statement: (id) => deliverOrder(id, NOW, CONTESTED.afterPayment),
    given: SETTLED,
    changes: { delivered_at: NOW },
    refusals: [
      ...[`state = 'paid_unfulfilled'`, 'delivered_at = 5', 'sealed_at = 5'],
      ...[`expires_at = ${NOW}`, `contested = ${CONTESTED.beforePayment}`],
    ],
    alike: [`contested = ${CONTESTED.afterPayment}`],
  },
  'contesting an order before its payment': {
    statement: contestOrder,
    given: `state = 'pending'`,
    changes: { contested: CONTESTED.beforePayment },
    refusals: ['contested = 1', 'contested = 3', 'opened_by = null', 'sealed_at = 1'],
    alike: [`state = 'opening'`, `state = 'dead'`],
  },
  'contesting an order after its payment': {
    statement: contestOrder,
    given: SETTLED,
    changes: { contested: CONTESTED.afterPayment },
    refusals: ['contested = 2'],
    alike: [`state = 'paid_unfulfilled'`],
  },
  'claiming a look-up': {
    statement: (id) => claimLookup(id, NOW, 1_000),
    given: `state = 'pending', looked_up_at = ${NOW - 1_000}`,
    changes: { looked_up_at: NOW },
    refusals: [
      `looked_up_at = ${NOW - 999}`,
      `looked_up_at = ${NOW + CLOCKS_APART_MS}`,
      `state = 'settled'`,
      `state = 'dead', is_dead_final = 1`,
    ],
    alike: [
      `state = 'dead', is_dead_final = 0`,
      `looked_up_at = ${NOW + CLOCKS_APART_MS + 1}`,
      `is_dead_final = 1`,
    ],
  },
  'claiming a look-up of the sweep': {
    statement: (id) => claimSweep(id, 5, NOW),
    given: `state = 'pending', looked_up_at = 5`,
    changes: { looked_up_at: NOW },
    refusals: ['looked_up_at = 6', `state = 'settled'`],
  },
  'sealing an order with the use of its token': {
    statement: () => sealDelivery('catch_mine', NOW),
    given: SETTLED,
    changes: { seed: null, sealed_at: NOW, sealed_by: 'use' },
    refusals: ['sealed_at = 5'],
  },
  'sealing the seed of an order again': {
    statement: (id) => resealOrder(id, SEED, NEW_SEED),
    given: SETTLED,
    changes: { seed: NEW_SEED },
    refusals: ['seed = null'],
  },
  'storing the invoice of an order': {
    statement: (id) => invoiceOrder(id, 5, INVOICE),
    given: `state = 'opening', claimed_at = 5`,
    changes: { ...INVOICE, state: 'pending' },
    refusals: ['claimed_at = 6', `state = 'pending'`],
  },
  'taking over an opening order': {
    statement: (id) => reclaimOrder(id, 5, NOW),
    given: `state = 'opening', claimed_at = 5`,
    changes: { claimed_at: NOW },
    refusals: ['claimed_at = 6', `state = 'pending'`],
  },
  'dropping an opening order': {
    statement: (id) => dropOpening(id, 5),
    given: `state = 'opening', claimed_at = 5`,
    changes: null,
    refusals: ['claimed_at = 6', `state = 'pending'`],
  },
}

suite('a statement about an order', () => {
  for (const [what, one] of Object.entries(STATEMENTS)) {
    test(`${what} changes that order as it should, no other one, and nothing when it is refused`, async (t) => {
      const shop = await aShop(t)
      const { db } = shop
      const [mine, other] = [await shop.quote(KEY), await shop.quote(OTHER_KEY)]
      const assign = (set: string, where = '') =>
        db.write(unit({ text: `update purchase_order set ${set}${where}`, values: [] }))
      const own = ` where order_id = '${mine.orderId}'`
      await db.write(unit({ text: 'update purchase_order set seed = $1', values: [SEED] }))
      await assign(`public_id = 'catch_other'`, ` where order_id = '${other.orderId}'`)
      await assign(`public_id = 'catch_mine'`, own)
      const rows = async (): Promise<(Row | undefined)[]> => [
        await shop.order(mine),
        await shop.order(other),
      ]
      const initial = await db.read('select * from purchase_order order by order_id')
      const reset = async (set: string): Promise<void> => {
        await db.write(unit({ text: 'delete from purchase_order', values: [] }))
        for (const row of initial) await db.write(unit(inserting(row)))
        await assign(one.given)
        if (set !== '') await assign(set, own)
      }
      const run = () => attempt(db.write(unit(one.statement(mine.orderId))))

      for (const refusal of one.refusals) {
        await reset(refusal)
        const before = await rows()
        await run()
        assert.deepEqual(await rows(), before, `refused by ${refusal}`)
      }
      for (const set of ['', ...(one.alike ?? [])]) {
        await reset(set)
        const [before, neighbour] = await rows()
        assert.ok('rows' in (await run()), set)
        const changed = one.changes === null ? undefined : { ...before, ...one.changes }
        assert.deepEqual((await rows()).map(plain), [changed, neighbour].map(plain), set)
      }
    })
  }
})

/** Rows as they compare on both engines: bytes may come as a Buffer. */
const plain = (row: Record<string, unknown> | undefined): unknown =>
  row &&
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value,
    ]),
  )

const inserting = (row: Row): Statement => {
  const names = Object.keys(row)
  return {
    text: `insert into purchase_order (${names.join(', ')}) values (${names.map((_, i) => `$${i + 1}`).join(', ')})`,
    values: Object.values(row),
  }
}
