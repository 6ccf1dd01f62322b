import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { Pool } from 'pg'
import type { Statement } from '../../src/db/db.ts'
import { insertOrder, limitOpen } from '../../src/payment/store.ts'
import { aPostgresDatabase } from '../support/postgres.ts'
import { aName, anOffer, aRequest, aShop, QUOTE_SECONDS, SECOND } from '../support/shop.ts'

const MOST = 20
const key = (i: number): string => `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`

test('the unpaid orders of a network are limited exactly, and each network for itself', async (t) => {
  const { orders, clock, node, pay } = await aShop(t)
  const open = (from: number, clientNetwork = '203.0.113') =>
    Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        orders.open(aName(key(from + i)), aRequest(), anOffer({ clientNetwork, mostOpen: MOST })),
      ),
    )
  const first = await open(0)
  const quotes = first.flatMap((outcome) => (outcome.kind === 'pending' ? [outcome.quote] : []))
  assert.equal(quotes.length, MOST)
  assert.equal(node.invoices.length, MOST, 'what is refused has no invoice')
  const refused = first.filter(({ kind }) => kind !== 'pending')
  const full = { kind: 'rate limited', retryAfterSeconds: QUOTE_SECONDS }
  for (const outcome of refused) {
    assert.deepEqual({ ...outcome, retryAfterSeconds: QUOTE_SECONDS }, full)
  }
  const pending = async (answers: ReturnType<typeof open>) =>
    (await answers).filter(({ kind }) => kind === 'pending').length
  assert.equal(await pending(open(100, '198.51.100')), MOST)

  // A paid order makes room, and so does a quote that is over, whatever the node says of it.
  const [paid] = quotes
  assert.ok(paid)
  await pay(paid)
  await orders.reconcile(paid.paymentHash, 'stream')
  assert.equal(await pending(open(200)), 1)
  clock.advance(QUOTE_SECONDS * SECOND)
  assert.equal(await pending(open(300)), MOST)
})

test('it is exact on PostgreSQL, too, where transactions do not see each other', async () => {
  const pool = await aPool()
  const order = (i: number): Statement[] => [
    insertOrder({
      order_id: `order_${i}`,
      secret_id: '',
      key_hash: Buffer.alloc(1),
      request_hash: Buffer.alloc(1),
      product: 'catch',
      plan_id: 'spark',
      plan: '{}',
      terms: 'null',
      memo: '',
      amount_sats: 1,
      client_network: '203.0.113',
      created_at: 0,
    }),
    ...limitOpen('203.0.113', 1, MOST),
  ]
  const opened = await Promise.all(Array.from({ length: 100 }, (_, i) => unit(pool, order(i))))
  await pool.end()
  assert.equal(opened.filter(Boolean).length, MOST)
})

/** True when every statement met its condition; otherwise nothing happened. */
async function unit(pool: Pool, statements: Statement[]): Promise<boolean> {
  const client = await pool.connect()
  try {
    await client.query('begin isolation level read committed')
    for (const { text, values, expect } of statements) {
      const { rowCount } = await client.query(text, values)
      if (expect !== undefined && rowCount !== expect) {
        await client.query('rollback')
        return false
      }
    }
    await client.query('commit')
    return true
  } finally {
    client.release()
  }
}

async function aPool(): Promise<Pool> {
  const pool = new Pool({ connectionString: await aPostgresDatabase(), max: 20 })
  // The pool ends before its connections do, and the server may be told to stop in between.
  pool.on('error', () => {})
  for (const name of ['0001-orders-and-catch', '0006-opening-lock']) {
    const file = new URL(`../../src/db/migrations/${name}.sql`, import.meta.url)
    const text = await readFile(file, 'utf8')
    await pool.query(text.replaceAll(/\bblob\b/g, 'bytea').replaceAll(/\binteger\b/g, 'bigint'))
  }
  return pool
}
