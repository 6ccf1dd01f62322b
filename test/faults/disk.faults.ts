import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { suite, test } from 'node:test'
import { until } from '../support/until.ts'
import { sqliteStore, startService } from './service.ts'

const PROMISES = 60
/** What is left when the disk is nearly full. */
const ROOM_BYTES = 64 * 1024

/** Files of this process grow no further: for it the disk is full (setrlimit(2), RLIMIT_FSIZE). */
function limitFiles(pid: number, bytes: number | 'unlimited'): void {
  execFileSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:`])
}

suite('the disk of SQLite is full', { timeout: 600_000 }, () => {
  test('acknowledged writes stay on a full disk, the rest is refused, and the service goes on with room', async (t) => {
    const store = await sqliteStore(t)
    const service = await startService(t, store, {})
    await service.progress(PROMISES)
    const [program] = service.programs
    assert.ok(program && store.where.kind === 'sqlite')
    const { file } = store.where
    const size = Math.max(statSync(file).size, statSync(`${file}-wal`).size)

    limitFiles(program.pid, size + ROOM_BYTES)
    const refused = await until('a refusal', async () => {
      const answer = await fetch(`${program.url}/api/payments/catch`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': crypto.randomUUID() },
        body: '{"planId":"spark"}',
      })
      const body = await answer.text()
      return (
        answer.status >= 500 && {
          status: answer.status,
          body,
          retryAfter: answer.headers.get('retry-after'),
        }
      )
    })
    assert.deepEqual(refused, {
      status: 503,
      body: '{"error":"service unavailable"}',
      retryAfter: '2',
    })
    assert.equal((await fetch(`${program.url}/health`)).status, 200)
    const isReady = async () => (await fetch(`${program.url}/ready`)).status === 200
    await until('readiness to end', async () => !(await isReady()))

    limitFiles(program.pid, 'unlimited')
    await until('readiness', isReady)
    await service.progress(PROMISES)
    assert.equal(service.programs[0], program)
    assert.deepEqual(await service.close(), [])
  })
})
