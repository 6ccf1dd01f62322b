/** Instances that die and come while others go on: nobody's payment is lost or honoured twice. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { Client } from 'pg'
import type { CatchCapability } from '../../src/client/index.ts'
import { idempotencyKey, poll, purchase, quoteOf } from '../support/buying.ts'
import { SECRET } from '../support/instances.ts'
import { hasPaid } from '../support/payer.ts'
import { aPostgresDatabase } from '../support/postgres.ts'
import { type Program, startProgram } from '../support/program.ts'
import { until } from '../support/until.ts'

const BUYERS = 6
const KILLS = 3

test('instances are killed and started while orders settle: each is delivered, and once', async (t) => {
  const database = await aPostgresDatabase()
  const running = await Promise.all([anInstance(t, database), anInstance(t, database)])
  let turn = 0
  /** Whichever is next, alive or not: a buyer cannot know. */
  const next = (): Program => running[turn++ % running.length] as Program
  let isOver = false

  async function killing(): Promise<void> {
    for (let i = 0; i < KILLS; i++) {
      await running[i % 2]?.kill()
      running[i % 2] = await anInstance(t, database)
    }
    isOver = true
  }

  async function buyInbox(): Promise<CatchCapability> {
    const key = randomUUID()
    const quote = await until('a quote', async () => quoteOf(await purchase(next(), { key })))
    await until('it is paid', () => hasPaid(next().url, quote.bolt11))
    const text = await until('it is delivered', () => deliveredText(next(), quote.orderId, key), {
      everyMs: 100,
    })
    return JSON.parse(text).resource
  }

  async function buyer(): Promise<CatchCapability[]> {
    const bought: CatchCapability[] = []
    while (!isOver) bought.push(await buyInbox())
    return bought
  }

  const [all] = await Promise.all([Promise.all(Array.from({ length: BUYERS }, buyer)), killing()])
  const bought = all.flat()
  const orders = bought.length

  assert.equal(new Set(bought.map(({ publicId }) => publicId)).size, orders)
  const sent = await Promise.all(
    bought.map(({ publicId }) => fetch(`${next().url}/c/${publicId}`, { method: 'POST' })),
  )
  assert.ok(sent.every(({ status }) => status === 204))
  assert.deepEqual(await books(t, database), {
    orders,
    settled: orders,
    paid: orders,
    inboxes: orders,
  })
})

function anInstance(t: TestContext, database: string): Promise<Program> {
  const environment = {
    MAYFLY_DATABASE_URL: database,
    MAYFLY_SECRET: SECRET,
    MAYFLY_RATE_LIMITS: 'off',
  }
  return startProgram(t, '', { environment })
}

async function deliveredText(
  program: Program,
  orderId: string,
  key: string,
): Promise<string | null> {
  const { status, text } = await poll(program, orderId, idempotencyKey(key))
  return status === 200 ? text : null
}

async function books(t: TestContext, database: string): Promise<unknown> {
  const client = new Client(database)
  await client.connect()
  t.after(() => client.end())
  const { rows } = await client.query(
    `select (select count(*)::int from purchase_order) as orders,
       (select count(*)::int from purchase_order where state = 'settled') as settled,
       (select count(*)::int from simulator_invoice where state = 'settled') as paid,
       (select count(*)::int from catch_inbox) as inboxes`,
  )
  return rows[0]
}
