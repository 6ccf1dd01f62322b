/** The periodic work that the running service does, besides what a request asks for. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { anInbox } from '../support/catch.ts'
import { startServer } from '../support/server.ts'
import { query } from '../support/store.ts'
import { until } from '../support/until.ts'

/** Rows that are over since 1970, by table, and how they are found. */
const OVER = [
  [
    'sale',
    `insert into sale (payment_hash, settled_at, product, plan_id, amount_sats, network)
      values ('aa', 0, 'catch', 'spark', 1, 'regtest')`,
    'settled_at = 0',
  ],
  ['blind_window', 'insert into blind_window (began_at, ended_at) values (0, 1)', 'ended_at = 1'],
  [
    'alert',
    `insert into alert (destination_id, position, message_id, type, occurred_at, replaces, content,
        not_before, attempts, coalesced, done_at)
      values ('none', 1, 'm', 'pulse.late', 0, 0, '{}', 0, 1, 0, 1)`,
    'done_at = 1',
  ],
] as const

test('the running service deletes what is over: sales, blind windows, alerts and capabilities', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const server = await startServer(t, { MAYFLY_SALES_KEPT_DAYS: '1' })
  await anInbox(server)
  for (const [, text] of OVER) await query(server, text)
  await query(server, 'update catch_inbox_use set expires_at = 1')
  t.mock.timers.tick(30_000)
  for (const [table, , isOver] of OVER) {
    await until(`the rows of ${table} are gone`, async () => {
      return (await query(server, `select 1 as n from ${table} where ${isOver}`)).length === 0
    })
  }
  await until('the inbox is gone', async () => {
    return (await query(server, 'select 1 as n from catch_inbox')).length === 0
  })
  assert.ok(server.logged.some((line) => line.includes('"product.purged"')))
})
