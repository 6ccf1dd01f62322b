/** The operator's commands at a store in PostgreSQL. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { BIN, ENVIRONMENT } from '../../support/bin.ts'
import { poll, purchase, quoteOf } from '../../support/buying.ts'
import { runCommand } from '../../support/command.ts'
import { aPostgresDatabase } from '../../support/postgres.ts'
import { startServer } from '../../support/server.ts'
import { query } from '../../support/store.ts'

type Finding = { check: string; state: string; says: string }

const bad = (findings: Finding[]) =>
  findings.filter(({ state }) => state === 'bad').map(({ check, says }) => `${check}: ${says}`)

test('doctor looks into a PostgreSQL store alike, and changes nothing in it', async () => {
  const url = await aPostgresDatabase()
  const environment = {
    MAYFLY_DATABASE_URL: url,
    MAYFLY_SECRET: '11'.repeat(32),
    MAYFLY_URL: 'http://127.0.0.1:9',
  }
  const empty: Finding[] = JSON.parse((await runCommand(['doctor', '--json'], environment)).out)
  assert.equal(empty.find(({ check }) => check === 'content')?.state, 'note')
  await runCommand(['order', 'list'], environment)
  const migrated = JSON.parse((await runCommand(['doctor', '--json'], environment)).out)
  assert.deepEqual(bad(migrated), [])
  await query(
    { databaseUrl: url },
    `insert into purchase_order (order_id, secret_id, request_hash, product, plan_id, plan,
       terms, amount_sats, client_network, state, created_at, looked_up_at, network,
       bolt11, payment_hash, quote_expires_at, opened_by, contested)
     values ('order_x', 'x', '', 'catch', 'spark', '{}', 'null', 1, '', 'paid_unfulfilled', 1, 1, 'regtest', '', '', 1,
       '', 0)`,
  )
  const owed = JSON.parse((await runCommand(['doctor', '--json'], environment)).out)
  assert.match(bad(owed)[0] ?? '', /^debts: 1 paid order/)
})

test('orders in PostgreSQL are delivered alike, and the store is backed up by tools of its own', async (t) => {
  const databaseUrl = await aPostgresDatabase()
  const environment = {
    MAYFLY_DATABASE_URL: databaseUrl,
    MAYFLY_SECRET: '11'.repeat(32),
  }
  const server = await startServer(t, { ...environment, MAYFLY_METRICS_PORT: '0' })
  const { orderId } = quoteOf(await purchase(server, {}))
  const run = (...args: string[]) => runCommand(args, environment)
  assert.match((await run('order', 'show', orderId)).out, /^state +pending$/m)
  await query({ databaseUrl }, 'delete from simulator_invoice')
  await query(
    { databaseUrl },
    `update purchase_order set state = 'paid_unfulfilled', settled_by = 'stream'`,
  )
  assert.equal((await run('order', 'deliver', orderId)).code, 0)
  const delivered = await poll(server, orderId)
  assert.equal(delivered.status, 200)
  const scraped = server.logged.find((line) => line.includes('metrics.listening'))
  const { url } = JSON.parse(String(scraped)) as { url: string }
  assert.match(await (await fetch(url)).text(), /^mayfly_orders\{state="settled"\} 1$/m)
  const refused = await run('backup', 'nowhere.db')
  assert.deepEqual([refused.code, refused.out], [1, ''])
  assert.match(refused.err, /docs\/run\/backup\.md/)
})

/** A week ahead. */
const WRONG_CLOCK = `--import=data:text/javascript,${encodeURIComponent(
  'const right = Date.now; Date.now = () => right() + 7 * 86_400_000',
)}`

test('what is delivered from a machine whose clock is wrong begins at the time of the database', async (t) => {
  const databaseUrl = await aPostgresDatabase()
  const settings = { MAYFLY_DATABASE_URL: databaseUrl, MAYFLY_SECRET: '11'.repeat(32) }
  const server = await startServer(t, settings)
  const { orderId } = quoteOf(await purchase(server, {}))
  await query(
    { databaseUrl },
    `update purchase_order set state = 'paid_unfulfilled', settled_by = 'stream'`,
  )
  const begunAt = Date.now()
  const env = { ...ENVIRONMENT, ...settings, NODE_OPTIONS: WRONG_CLOCK }
  for (const args of [['deliver'], ['refund', '--settled', '--reason', 'a test']]) {
    await promisify(execFile)(process.execPath, [BIN, 'order', ...args, orderId], { env })
  }
  const [{ settled_at, sealed_at } = {}] = await query(
    { databaseUrl },
    'select settled_at, sealed_at from purchase_order',
  )
  for (const at of [settled_at, sealed_at].map(Number)) {
    assert.ok(at >= begunAt - 1_000 && at <= Date.now() + 1_000, new Date(at).toISOString())
  }
})
