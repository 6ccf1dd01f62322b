/** The periodic work that the running service does, besides what a request asks for. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { anInbox } from '../support/catch.ts'
import { aMonitor } from '../support/pulse.ts'
import { scrape } from '../support/scrape.ts'
import { startServer } from '../support/server.ts'
import { query } from '../support/store.ts'
import { until } from '../support/until.ts'

const TWO_DAYS_MS = 2 * 24 * 60 * 60 * 1000

/** Rows that are over, by table, and how they are found. All but the sale are over since 1970. */
const OVER = [
  [
    'sale',
    `insert into sale (payment_hash, settled_at, product, plan_id, amount_sats, network)
      values ('aa', ${Date.now() - TWO_DAYS_MS}, 'catch', 'spark', 1, 'regtest')`,
    `payment_hash = 'aa'`,
  ],
  [
    'catch_refusal',
    `insert into catch_refusal (public_id, reason, refusal_count, first_at, last_at)
      values ('catch_gone', 'too_large', 1, 0, 0)`,
    `public_id = 'catch_gone'`,
  ],
  [
    'reveal_binding',
    `insert into reveal_binding (order_id, monitor_id, monitor_ends_at, reserved_at, timing)
      values ('never paid', 'pulse_any', 0, 0, '{}')`,
    `order_id = 'never paid'`,
  ],
  ['rate_limit', `insert into rate_limit (key, points, expire) values ('a', 1, 0)`, `key = 'a'`],
  ['blind_window', 'insert into blind_window (began_at, ended_at) values (0, 1)', 'ended_at = 1'],
  [
    'alert',
    `insert into alert (destination_id, position, message_id, type, occurred_at, replaces, content,
        not_before, attempts, done_at)
      values ('none', 1, 'm', 'pulse.late', 0, 0, '{}', 0, 1, 1)`,
    'done_at = 1',
  ],
] as const

/** SQLite has one instance, which shares no limits. */
const STAYS = process.env.MAYFLY_TEST_ENGINE === 'postgres' ? '' : 'rate_limit'

const GONE = 'select 1 as n from catch_inbox union all select 1 from pulse_monitor'

test('the running service deletes what is over: sales, blind windows, alerts and capabilities', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const server = await startServer(t, { MAYFLY_SALES_KEPT_DAYS: '1', MAYFLY_METRICS_PORT: '0' })
  await anInbox(server)
  await aMonitor(server)
  for (const [, text] of OVER) await query(server, text)
  await query(server, 'update catch_inbox_use set expires_at = 1')
  await query(server, 'update pulse_monitor set expires_at = 1')
  t.mock.timers.tick(30_000)
  for (const [table, , isOver] of OVER) {
    if (table === STAYS) continue
    await until(`the rows of ${table} are gone`, async () => {
      return (await query(server, `select 1 as n from ${table} where ${isOver}`)).length === 0
    })
  }
  await until('inbox and monitor are gone', async () => {
    return (await query(server, GONE)).length === 0
  })
  await until('each is counted as its own product', async () => {
    const { series } = await scrape(server)
    return ['catch', 'pulse', 'whisper'].every((product) => {
      const rows = series.get(`mayfly_purged_rows_total{product="${product}"}`)
      return rows === (product === 'whisper' ? 0 : 1)
    })
  })
  assert.ok(server.logged.some((line) => line.includes('"product.purged"')))
})
