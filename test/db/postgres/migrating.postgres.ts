/** Upgrades of a database that is large, or that others use: what waits for what, and how it ends. */
import assert from 'node:assert/strict'
import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { StoreBusy, StoreUnusable } from '../../../src/db/db.ts'
import type { MigrateOptions } from '../../../src/db/migrate.ts'
import { openStore } from '../../../src/db/open.ts'
import { storeError } from '../../../src/db/postgres/errors.ts'
import { type After, temporaryFolder } from '../../support/folder.ts'
import { holding, waits } from '../../support/locks.ts'
import { aPostgresDatabase } from '../../support/postgres.ts'
import { startServer } from '../../support/server.ts'
import { query } from '../../support/store.ts'
import { ownedTimers } from '../../support/timers.ts'
import { until } from '../../support/until.ts'

const OWN = new URL('../../../src/db/migrations/', import.meta.url)
const LATER = '9998-later.sql'

/** The migrations, and one more with these statements. */
async function withLater(t: After, sql: string): Promise<URL> {
  const folder = await temporaryFolder(t)
  await cp(OWN, folder, { recursive: true })
  await writeFile(join(folder, LATER), sql)
  return pathToFileURL(`${folder}/`)
}

/** A database of this version, and what upgrades it. */
async function anUpgrade(t: After, sql: string) {
  const url = await aPostgresDatabase()
  await (await openStore({ kind: 'postgres', url })).close()
  const folder = await withLater(t, sql)
  const upgrade = async (options: MigrateOptions = {}, of = url): Promise<void> =>
    (await openStore({ kind: 'postgres', url: of }, { folder, ...options })).close()
  const isUpgraded = async (): Promise<boolean> => {
    const rows = await query(
      { databaseUrl: url },
      'select 1 as n from migration where name = $1',
      LATER,
    )
    return rows.length === 1
  }
  return { url, upgrade, isUpgraded }
}

test('a statement of a migration may take longer than any answer, and than the limits of its session', async (t) => {
  const { url, upgrade, isUpgraded } = await anUpgrade(
    t,
    'select pg_advisory_xact_lock(5), pg_sleep(0.2);',
  )
  const letGo = await holding(t, url, 'select pg_advisory_xact_lock(5)')
  const timers = ownedTimers(t)
  const options = { lockWaits: { onceMs: 0, inAllMs: 0, pauseMs: 0 } }
  const upgrading = upgrade(options, `${url}?statement_timeout=50&lock_timeout=50`)
  let error: unknown = null
  upgrading.catch((reason: unknown) => {
    error = reason
  })
  await timers.noSweep(() => waits(url))
  const now = performance.now.bind(performance)
  const later = t.mock.method(performance, 'now', () => now() + 3_600_000)
  t.mock.timers.tick(10_000)
  t.mock.timers.tick(10_000)
  later.mock.restore()
  await timers.noSweep(() => waits(url))
  assert.equal(error, null)
  await letGo()
  await upgrading
  assert.ok(await isUpgraded())
})

test('a table that another session uses is asked for again and again, until that session has ended', async (t) => {
  const { url, upgrade, isUpgraded } = await anUpgrade(t, 'alter table meta add column later text;')
  const letGo = await holding(t, url, 'select count(*) as n from meta')
  const reasons: string[] = []
  await upgrade({
    lockWaits: { onceMs: 20, inAllMs: 600_000, pauseMs: 1 },
    onWaiting(reason) {
      reasons.push(reason)
      if (reasons.length === 3) void letGo()
    },
  })
  assert.ok(reasons.length >= 3)
  assert.equal(
    reasons[0],
    `another session holds a lock that ${LATER} needs (PostgreSQL: canceling statement due to lock timeout (55P03))`,
  )
  assert.ok(await isUpgraded())
})

test('a table that another session never gives up stops the start with a sentence, and nothing is changed', async (t) => {
  const { url, upgrade, isUpgraded } = await anUpgrade(
    t,
    'create table later (n integer);\nalter table meta add column later text;',
  )
  const letGo = await holding(t, url, 'select count(*) as n from meta')
  const lockWaits = { onceMs: 20, inAllMs: 0, pauseMs: 1 }
  await assert.rejects(
    upgrade({ lockWaits }),
    new StoreUnusable(
      `The database cannot be migrated: another session holds a lock that ${LATER} needs. Nothing was changed. ` +
        'End that session, or wait until it has ended, and start again: docs/run/postgresql.md says how to find it.',
    ),
  )
  assert.equal(await isUpgraded(), false)
  const [row] = await query({ databaseUrl: url }, `select to_regclass('later') is null as is_gone`)
  assert.equal(row?.is_gone, 1)
  await letGo()
  await upgrade({ lockWaits })
  assert.ok(await isUpgraded())
})

test('an instance that starts while another one migrates says so, and waits for its end', async (t) => {
  const { url, upgrade } = await anUpgrade(t, 'select pg_advisory_xact_lock(5);')
  const letGo = await holding(t, url, 'select pg_advisory_xact_lock(5)')
  const told: string[] = []
  const noted = (who: string): MigrateOptions => ({
    onWaiting: (reason) => told.push(`${who}: ${reason}`),
    onMigrating: (name) => told.push(`${who} migrates: ${name}`),
    lockWaits: { onceMs: 0, inAllMs: 0, pauseMs: 0 },
  })
  const first = upgrade(noted('first'))
  await until('the first one migrates', () => waits(url))
  const second = upgrade(noted('second'))
  await until('the second one waits', () => told.length === 2)
  await letGo()
  await Promise.all([first, second])
  assert.deepEqual(told, [
    `first migrates: ${LATER}`,
    'second: another instance migrates the database',
  ])
})

test('a new database tells of no migration', async (t) => {
  const url = await aPostgresDatabase()
  const told: string[] = []
  const db = await openStore({ kind: 'postgres', url }, { onMigrating: (name) => told.push(name) })
  t.after(() => db.close())
  assert.deepEqual(told, [])
})

test('a migration that others have locked in a circle is tried again', () => {
  const error = Object.assign(new Error('deadlock detected'), { code: '40P01', severity: 'ERROR' })
  assert.ok(storeError(error) instanceof StoreBusy)
})

test('a request that waits too long for a lock is told to come again', async (t) => {
  const url = await aPostgresDatabase()
  const server = await startServer(t, {
    MAYFLY_DATABASE_URL: `${url}?lock_timeout=50`,
    MAYFLY_SECRET: '11'.repeat(32),
  })
  const letGo = await holding(t, url, 'lock table purchase_order')
  const buy = (): Promise<Response> =>
    fetch(`${server.url}/api/payments/catch`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': crypto.randomUUID() },
      body: '{"planId":"spark"}',
    })
  const refused = await buy()
  assert.deepEqual(
    [refused.status, refused.headers.get('retry-after'), await refused.text()],
    [503, '2', '{"error":"service unavailable"}'],
  )
  await letGo()
  assert.equal((await buy()).status, 402)
})
