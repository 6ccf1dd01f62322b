/** What a service lets go of when it stops, though its process lives on. */
import assert from 'node:assert/strict'
import { createHook } from 'node:async_hooks'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { ConfigError } from '../../src/service/config.ts'
import { put } from '../support/alerts.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { mmdb } from '../support/mmdb.ts'
import { freePort } from '../support/ports.ts'
import { aMonitor, live, ping } from '../support/pulse.ts'
import { aReceiver } from '../support/receiver.ts'
import { startServer, testClock } from '../support/server.ts'
import { createLedger } from '../support/stand-ins/ledger.ts'
import { startPhoenixd } from '../support/stand-ins/phoenixd.ts'
import { aMigratedDatabaseUrl, query } from '../support/store.ts'

const isPostgres = process.env.MAYFLY_TEST_ENGINE === 'postgres'
/** Files that are watched, sockets, servers, and timers that keep a process. Threads of stores go to the next one. */
const HELD = ['STATWATCHER', 'TCPWRAP', 'TCPSERVERWRAP', 'Timeout']

/** Asserts of what is opened from now on that nothing is open. */
function watchOpened(t: After): () => Promise<void> {
  const open = new Map<number, { type: string; handle: { hasRef?: () => boolean } }>()
  const hook = createHook({
    init(...[id, type, , handle]) {
      if (HELD.includes(type)) open.set(id, { type, handle })
    },
    destroy: (id) => void open.delete(id),
  })
  hook.enable()
  t.after(() => hook.disable())
  const kept = (): string[] =>
    [...open.values()]
      .filter(({ type, handle }) => type !== 'Timeout' || handle.hasRef?.())
      .map(({ type }) => type)
  return async () => {
    // What was closed ends within some turns, and what is kept alive does not.
    for (let turn = 0; turn < 200 && kept().length > 0; turn++) await new Promise(setImmediate)
    assert.deepEqual(kept(), [])
  }
}

test('a stop closes the store, the files and listeners, and the attempts of alerts', async (t) => {
  const file = join(await temporaryFolder(t), 'places.mmdb')
  await writeFile(file, mmdb({ networks: { '203.0.113.0/24': { country: { iso_code: 'DE' } } } }))
  const receiver = await aReceiver(t)
  // What makes stores lives on.
  await aMigratedDatabaseUrl(t)
  const assertClosed = watchOpened(t)
  const server = await startServer(t, {
    MAYFLY_ALLOWED_HOSTS: receiver.host,
    MAYFLY_GEOIP_DATABASE: file,
    MAYFLY_METRICS_PORT: '0',
  })
  const monitor = await aMonitor(server)
  await put(server, monitor, [{ url: receiver.url }])
  await server.mayfly.pulse(monitor).update({ expectedIntervalSeconds: 60, graceSeconds: 60 })
  await ping(server, monitor)
  receiver.answer = () => undefined
  await live(server, 3 * 60_000)
  await receiver.until('pulse.late')
  const isStoreOpen = (): boolean => !isPostgres && existsSync(`${server.file}-wal`)
  const open = [isStoreOpen()]
  server.logged.push = (line) => {
    if (line?.includes('"event":"stopped"')) open.push(isStoreOpen())
    return 0
  }
  await server.stop()
  await assertClosed()
  assert.deepEqual(open, [!isPostgres, false], 'at its last word all is closed')
})

test('a stop takes the instance off the clock, so that no gap is seen at the next start', async (t) => {
  const server = await startServer(t)
  assert.equal((await query(server, 'select * from clock_beat')).length, 1)
  await server.stop()
  assert.deepEqual(await query(server, 'select * from clock_beat'), [])
})

test('a stop closes the connections to the node', async (t) => {
  const clock = testClock()
  const node = await startPhoenixd({ clock, own: createLedger(clock) })
  t.after(node.close)
  const assertClosed = watchOpened(t)
  const login = `phoenixd+http://:${encodeURIComponent(node.limitedPassword)}@`
  const server = await startServer(t, {
    MAYFLY_LIGHTNING_URL: node.baseUrl.replace('http://', login),
  })
  await server.stop()
  await assertClosed()
})

test('a start that fails closes what it has opened', async (t) => {
  const port = await freePort()
  const other = createServer().listen(port, '127.0.0.1')
  await once(other, 'listening')
  t.after(() => other.close())
  const assertClosed = watchOpened(t)
  await assert.rejects(startServer(t, { MAYFLY_METRICS_PORT: String(port) }), ConfigError)
  await assertClosed()
})
