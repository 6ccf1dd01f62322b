import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { startService, storeAt } from '../faults/service.ts'
import { refusedStart } from '../support/program.ts'
import { until } from '../support/until.ts'
import { debianClusters } from './debian.ts'
import { type PgBouncer, type PoolMode, startPgBouncer } from './pgbouncer.ts'
import { BIN } from './versions.ts'

/** A long run sets more: `DRILL_RESTARTS=50 npm run drill:pgbouncer`. */
const RESTARTS = Number(process.env.DRILL_RESTARTS ?? 6)
const PROMISES = 100
const REFUSAL = /A pooler in front of PostgreSQL gives each transaction another session\./

async function pooled(t: TestContext, mode: PoolMode, poolSize?: number): Promise<PgBouncer> {
  const { port } = await (await debianClusters(t)).primary()
  return startPgBouncer(t, { port, mode, ...(poolSize ? { poolSize } : {}) })
}

const twoInstances = (t: TestContext, { url }: PgBouncer) =>
  startService(t, storeAt(url), { instances: 2, bin: BIN })

suite('PgBouncer in front of PostgreSQL', { timeout: 600_000 + RESTARTS * 30_000 }, () => {
  test('in session mode it may be restarted under load, and nothing that was answered is lost or doubled', async (t) => {
    const bouncer = await pooled(t, 'session')
    const service = await twoInstances(t, bouncer)
    const pids = service.programs.map((program) => program?.pid)
    for (let i = 0; i < RESTARTS; i++) {
      await service.progress(1 + Math.floor(Math.random() * PROMISES))
      const from = performance.now()
      await bouncer.stop(i % 2 === 0 ? 'SIGTERM' : 'SIGKILL')
      await bouncer.start('session')
      await service.progress(1)
      t.diagnostic(`restart ${i + 1}: ${((performance.now() - from) / 1000).toFixed(2)} s`)
    }
    await service.progress(PROMISES)
    assert.deepEqual(
      service.programs.map((program) => program?.pid),
      pids,
    )
    const warned = service.programs.flatMap((program) =>
      (program?.logged ?? []).filter(({ event }) => event === 'hints.back'),
    )
    // LISTEN and NOTIFY work through it, and were found again.
    assert.ok(warned.length > 0)
    t.diagnostic([...service.load.statuses].map(([status, n]) => `${n} × ${status}`).join(', '))
    assert.deepEqual(await service.close(), [])
  })

  for (const mode of ['transaction', 'statement'] as const) {
    test(`in ${mode} mode the service does not start, and says what to change`, async (t) => {
      const { url } = await pooled(t, mode)
      const { code, told } = await refusedStart(t, url, { bin: BIN })
      assert.notEqual(code, 0)
      t.diagnostic(told.trim())
      assert.match(told, REFUSAL)
    })
  }

  test('set to transaction mode under load, it counts as away until it is set back, and nothing is lost', async (t) => {
    const bouncer = await pooled(t, 'session')
    const service = await twoInstances(t, bouncer)
    await service.progress(PROMISES)
    await bouncer.stop('SIGTERM')
    await bouncer.start('transaction')
    for (const program of service.programs) {
      await until('the instance is not ready', async () => {
        const answer = await fetch(`${program?.url}/ready`)
        await answer.arrayBuffer()
        return answer.status === 503
      })
    }
    await bouncer.stop('SIGTERM')
    await bouncer.start('session')
    await service.progress(PROMISES)
    assert.deepEqual(await service.close(), [])
  })

  for (const poolSize of [1, 2, 5, 10]) {
    test(`the service does not start with ${poolSize} sessions, and says how many it needs`, async (t) => {
      const { url } = await pooled(t, 'session', poolSize)
      const { code, told } = await refusedStart(t, url, { bin: BIN })
      assert.notEqual(code, 0)
      t.diagnostic(told.trim())
      assert.match(told, /gives out too few sessions/)
      if (poolSize > 2) assert.match(told, new RegExp(`needs 11 at once, and ${poolSize} came`))
    })
  }

  test('twelve sessions are enough for an instance, and six for one with a pool of four', async (t) => {
    for (const [poolSize, parameters] of [
      [12, ''],
      [6, '?pool=4'],
    ] as const) {
      const { url } = await pooled(t, 'session', poolSize)
      const store = storeAt(`${url}${parameters}`)
      const service = await startService(t, store, { instances: 1, bin: BIN })
      await service.progress(2 * PROMISES)
      const refused = service.load.statuses.get(503) ?? 0
      assert.deepEqual([refused, await service.close()], [0, []])
    }
  })
})
