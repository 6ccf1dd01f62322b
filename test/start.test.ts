import assert from 'node:assert/strict'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { migrate } from '../src/db/migrate.ts'
import { openSqlite } from '../src/db/sqlite/sqlite.ts'
import { ConfigError } from '../src/service/config.ts'
import { bindStore } from '../src/service/store-identity.ts'
import { temporaryFolder } from './support/folder.ts'
import { refusedStart, startProgram } from './support/program.ts'
import { until } from './support/until.ts'

test('a first start without its node says why the node does not answer', async (t) => {
  const file = join(await temporaryFolder(t), 'mayfly.db')
  const environment = { MAYFLY_LIGHTNING_URL: 'phoenixd+http://:secret@127.0.0.1:9' }
  const { code, told } = await refusedStart(t, file, { environment })
  assert.equal(code, 2)
  assert.match(
    told,
    /^Mayfly did not start\. The first start on a new store needs the Lightning node to answer\. phoenixd.*connection refused.*http:\/\/127\.0\.0\.1:9.*\.\n$/,
  )
  assert.doesNotMatch(told, /secret/)
})

test('a port in use is not blamed on another program, since it can be that of the metrics', async (t) => {
  const file = join(await temporaryFolder(t), 'mayfly.db')
  const other = await startProgram(t, file)
  const { port } = new URL(other.url)
  const environment = { MAYFLY_PORT: port }
  assert.deepEqual(await refusedStart(t, `${file}2.db`, { environment }), {
    code: 1,
    told: 'Mayfly did not start. The port is in use. Set MAYFLY_PORT to a free one, other than MAYFLY_METRICS_PORT.\n',
  })
})

test('a second signal ends a service whose stop takes long, and says so by its code', async (t) => {
  const file = join(await temporaryFolder(t), 'mayfly.db')
  const program = await startProgram(t, file, { environment: { MAYFLY_DRAIN_SECONDS: '300' } })
  program.signal('SIGTERM')
  await until('it stops', () => program.told().includes('Signal again to stop at once'))
  program.signal('SIGTERM')
  let code: number | null = null
  void program.ended.then((end) => {
    code = end.code
  })
  await until('it has ended', () => code !== null)
  assert.equal(code, 1)
})

suite('a start that would give something away', () => {
  const REFUSAL =
    'Mayfly did not start. The simulator takes no real money, and MAYFLY_HOST or MAYFLY_BASE_URL is not loopback. ' +
    'Set MAYFLY_LIGHTNING_URL to a real node, or MAYFLY_SIMULATOR=public to give everything away.\n'

  test('a start with the simulator on a public host or base URL is refused', async (t) => {
    const folder = await temporaryFolder(t)
    const starts = [
      { MAYFLY_HOST: '0.0.0.0' },
      { MAYFLY_BASE_URL: 'https://mayfly.example' },
      { MAYFLY_HOST: '::', MAYFLY_BASE_URL: 'http://localhost:8402' },
    ]
    assert.deepEqual(
      await Promise.all(
        starts.map((environment, i) => refusedStart(t, join(folder, `${i}.db`), { environment })),
      ),
      starts.map(() => ({ code: 2, told: REFUSAL })),
    )
  })

  test('a start with the simulator in public needs a setting that says so', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const { url } = await startProgram(t, file, {
      environment: { MAYFLY_BASE_URL: 'https://mayfly.example', MAYFLY_SIMULATOR: 'public' },
    })
    assert.equal((await fetch(`${url}/health`)).status, 200)
  })

  test('a start on another network than the node’s is refused', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    assert.deepEqual(await refusedStart(t, file, { environment: { MAYFLY_NETWORK: 'mainnet' } }), {
      code: 2,
      told: 'Mayfly did not start. MAYFLY_NETWORK is mainnet, and the node is on regtest.\n',
    })
  })

  test('a start on a store of another backend or network is refused', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const db = await openSqlite(file)
    await migrate(db)
    await bindStore(db, { backend: 'lnd', network: 'mainnet' })
    await bindStore(db, { backend: 'lnd', network: 'mainnet' })
    assert.equal(await bindStore(db, { backend: 'lnd', network: null }), 'mainnet')
    await assert.rejects(bindStore(db, { backend: 'lnd', network: 'signet' }), ConfigError)
    await assert.rejects(bindStore(db, { backend: 'cln', network: 'mainnet' }), ConfigError)
    await assert.rejects(bindStore(db, { backend: 'cln', network: null }), ConfigError)
    await db.close()
    assert.deepEqual(await refusedStart(t, file), {
      code: 2,
      told:
        'Mayfly did not start. This store belongs to lnd on mainnet, and MAYFLY_LIGHTNING_URL is simulator on regtest. ' +
        'Restore the setting, or choose another MAYFLY_DATABASE_URL.\n',
    })
  })
})
