import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { Client } from 'pg'
import { postgresStore, type Service, startService } from './service.ts'

/** How long PostgreSQL is away; a long run sets 20. */
const AWAY_SECONDS = Number(process.env.FAULT_AWAY_SECONDS ?? 3)
const CUTS = 20
const PROMISES = 60

async function twoInstances(t: TestContext): Promise<Service> {
  const service = await startService(t, await postgresStore(t), { instances: 2 })
  await service.progress(PROMISES)
  return service
}

/** The processes lived through it, work again, and the books balance. */
async function balances(service: Service): Promise<void> {
  await service.progress(PROMISES)
  const pids = service.programs.map((program) => program !== null)
  assert.deepEqual(pids, [true, true])
  assert.deepEqual(await service.close(), [])
}

suite('PostgreSQL fails under mixed load', { timeout: 900_000 }, () => {
  test('a restart of the server costs nothing that was promised', async (t) => {
    const service = await twoInstances(t)
    await service.store.server?.stop()
    await service.store.server?.start()
    await balances(service)
  })

  test(`a server that is away for ${AWAY_SECONDS} s is waited for, without a restart of ours`, async (t) => {
    const service = await twoInstances(t)
    await service.store.server?.stop()
    const [program] = service.programs
    const answer = await fetch(`${program?.url}/api/payments/catch`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': crypto.randomUUID() },
      body: '{"planId":"spark"}',
    })
    assert.deepEqual(
      [answer.status, answer.headers.get('retry-after'), await answer.text()],
      [503, '2', '{"error":"service unavailable"}'],
    )
    // The length of the outage is what is tested here.
    await wait(AWAY_SECONDS * 1_000)
    await service.store.server?.start()
    await balances(service)
  })

  test('connections that are cut at random, in transactions too, lose and double nothing', async (t) => {
    const service = await twoInstances(t)
    const admin = new Client({ connectionString: service.store.url })
    await admin.connect()
    let cut = 0
    for (let i = 0; i < CUTS; i++) {
      await service.progress(5)
      const { rowCount } = await admin.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where pid <> pg_backend_pid() and datname = current_database()
           and (state <> 'idle' or random() < 0.3)`,
      )
      cut += rowCount ?? 0
    }
    await admin.end()
    assert.ok(cut >= CUTS, `${cut} connections were cut`)
    await balances(service)
  })
})
