import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { postgresStore, sqliteStore, startService } from './service.ts'

/** A long run sets more: `FAULT_KILLS=200 npm run test:faults`. */
const KILLS = Number(process.env.FAULT_KILLS ?? 8)
/** Promises made between two kills, at most: enough for every kind of work to be under way. */
const PROMISES = 120

suite('a service killed at random under mixed load', { timeout: 300_000 + KILLS * 60_000 }, () => {
  test('one process on SQLite keeps every promise and the books balance', async (t) => {
    const service = await startService(t, await sqliteStore(t), {})
    for (let i = 0; i < KILLS; i++) {
      await service.progress(1 + Math.floor(Math.random() * PROMISES))
      await service.kill(0)
      await service.start(0)
    }
    await service.progress(PROMISES)
    assert.deepEqual(await service.close(), [])
    t.diagnostic(`${KILLS} kills, ${service.load.acknowledged()} promises`)
  })

  test('two processes on PostgreSQL keep every promise and the books balance, while one of them is always there', async (t) => {
    const service = await startService(t, await postgresStore(t), { instances: 2 })
    for (let i = 0; i < KILLS; i++) {
      await service.progress(1 + Math.floor(Math.random() * PROMISES))
      await service.kill(i % 2)
      await service.progress(10)
      await service.start(i % 2)
    }
    await service.progress(PROMISES)
    assert.deepEqual(await service.close(), [])
    t.diagnostic(`${KILLS} kills, ${service.load.acknowledged()} promises`)
  })
})
