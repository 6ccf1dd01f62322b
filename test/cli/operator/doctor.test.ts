import assert from 'node:assert/strict'
import { chmod, open, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { purchase } from '../../support/buying.ts'
import { runCommand } from '../../support/command.ts'
import { commandLine } from '../../support/command-line.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { freePort, ownPort } from '../../support/ports.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { serve } from '../../support/serving.ts'
import { LEDGER_NODE_ID } from '../../support/stand-ins/ledger.ts'
import { query } from '../../support/store.ts'

type Finding = { check: string; state: string; says: string }

/** What the doctor says of the server's store, with other settings. */
async function examine(
  server: Pick<TestServer, 'file' | 'url'>,
  environment: Record<string, string> = {},
): Promise<Finding[]> {
  const { out, err } = await runCommand(['doctor', '--json'], {
    MAYFLY_DATABASE_URL: `sqlite:${server.file}`,
    MAYFLY_URL: server.url,
    ...environment,
  })
  assert.ok(out, err)
  return JSON.parse(out)
}

const bad = (findings: Finding[]) =>
  findings.filter(({ state }) => state === 'bad').map(({ check, says }) => `${check}: ${says}`)

/** Root writes whatever it likes, so as root the command runs as nobody. */
const STRANGER = process.getuid?.() === 0 ? { uid: 65_534 } : {}

test('doctor finds nothing bad where nothing is, and ends well', async (t) => {
  const server = await startServer(t)
  await purchase(server, {})
  const { code, out } = await runCommand(['doctor'], {
    MAYFLY_DATABASE_URL: `sqlite:${server.file}`,
    MAYFLY_URL: server.url,
    MAYFLY_BASE_URL: server.url,
  })
  const found = (JSON.parse(out) as Finding[]).map(({ check, state }) => `${check} ${state}`)
  assert.deepEqual(found, [
    ...['configuration ok', 'store ok', 'debts ok', 'secret ok', 'node note', 'proxies note'],
    ...['outbound note', 'public address ok', 'service ok', 'clock ok'],
  ])
  assert.equal(code, 0)
})

test('doctor finds settings and files that would stop a start, and repeats no secret', async (t) => {
  const server = await startServer(t)
  const cases: [environment: Record<string, string>, says: RegExp][] = [
    [{ MAYFLY_PROT: '1' }, /^configuration: MAYFLY_PROT is not a setting/],
    [{ MAYFLY_PORT: 'hunter2' }, /^configuration: MAYFLY_PORT must be an integer/],
    [{ MAYFLY_SECRET_FILE: '/nowhere' }, /^configuration: MAYFLY_SECRET_FILE cannot be read/],
    [{ MAYFLY_HOST: '0.0.0.0' }, /^configuration: .*MAYFLY_SIMULATOR=public/],
    [
      { MAYFLY_NETWORK: 'mainnet', MAYFLY_ALLOWED_HOSTS: 'a.example:80' },
      /^configuration: MAYFLY_ALLOWED_HOSTS/,
    ],
    [{ MAYFLY_NETWORK: 'mainnet' }, /^node of the store: it belongs to simulator on regtest/],
  ]
  for (const [name, text, says] of [
    ['CATALOG', '{"catch":{"spark":{"priceSats":0}}}', /^configuration: .*catch\.spark\.price/],
    ['CATALOG', '{"coffee":{}}', /^configuration: .*coffee/],
    ['CATALOG', '{', /^configuration: MAYFLY_CATALOG/],
    ['RATE_LIMITS', '{"quota":1}', /^configuration: .*quota/],
    ['GEOIP_DATABASE', 'not a database', /^configuration: MAYFLY_GEOIP_DATABASE/],
  ] as const) {
    const file = join(await temporaryFolder(t), 'a.json')
    await writeFile(file, text)
    cases.push([{ [`MAYFLY_${name}`]: file }, says])
  }
  for (const [environment, says] of cases) {
    const [found = '', ...others] = bad(await examine(server, environment))
    assert.match(found, says)
    assert.deepEqual(others, [])
    assert.equal(found.includes('hunter2'), false)
  }
})

test('doctor finds a secret that is not the one of the orders, malformed or missing', async (t) => {
  const server = await startServer(t)
  await purchase(server, {})
  const other = { MAYFLY_SECRET: '22'.repeat(32) }
  assert.match(
    bad(await examine(server, other))[0] ?? '',
    /^secret: The secret in MAYFLY_SECRET is not the one that 1 open/,
  )
  const said = (await examine(server, other)).filter(({ check }) => check === 'secret')
  assert.equal(said.length, 1, 'it does not also say that the secret is right')
  const kept = server.file.replace(/\.db$/, '.secret')
  await writeFile(kept, 'hunter2')
  const malformed = bad(await examine(server)).join()
  assert.match(malformed, /secret: .* must hold 32 bytes in hex/)
  assert.equal(malformed.includes('hunter2'), false)
  await rm(kept)
  assert.match(bad(await examine(server)).join(), /secret: .* is missing, and .* has orders/)
  await query(server, `update purchase_order set state = 'dead'`)
  assert.deepEqual(bad(await examine(server, other)), [])
})

test('doctor says whether strangers see the address of the service, and whether a proxy in front is trusted', async (t) => {
  const server = await startServer(t)
  const tls = { MAYFLY_BASE_URL: 'https://mayfly.example.com', MAYFLY_SIMULATOR: 'public' }
  const cases: [environment: Record<string, string>, check: string, says: RegExp][] = [
    [tls, 'outbound', /^note: .*MAYFLY_OUTBOUND_PROXY hides it/],
    [{ ...tls, MAYFLY_OUTBOUND_PROXY: 'http://u:hunter2@p:1' }, 'outbound', /^ok: .*proxy$/],
    [{ ...tls, MAYFLY_OUTBOUND: 'off' }, 'outbound', /^ok: nothing/],
    [tls, 'proxies', /^bad: .+ Set MAYFLY_TRUSTED_PROXIES to its address$/],
    [{ ...tls, MAYFLY_TRUSTED_PROXIES: '127.0.0.1' }, 'proxies', /^ok: 127\.0\.0\.1 /],
    [{}, 'proxies', /^note: /],
  ]
  for (const [environment, wanted, says] of cases) {
    const found = (await examine(server, environment)).find(({ check }) => check === wanted)
    assert.match(`${found?.state}: ${found?.says}`, says)
  }
})

test('doctor says of a PostgreSQL server what a start would', async () => {
  const away = { MAYFLY_DATABASE_URL: 'postgres://mayfly:hunter2@127.0.0.1:9/mayfly' }
  const nowhere = { file: '', url: 'http://127.0.0.1:9' }
  const secretless = bad(await examine(nowhere, away)).join()
  assert.match(secretless, /^configuration: MAYFLY_SECRET must be set /)
  const found = bad(await examine(nowhere, { ...away, MAYFLY_SECRET: '11'.repeat(32) })).join()
  assert.match(found, /PostgreSQL at 127\.0\.0\.1:9 cannot be reached: connection refused\. Check /)
  assert.equal((secretless + found).includes('hunter2'), false)
})

test('doctor finds what is owed, and a store that this Mayfly does not start on', async (t) => {
  const server = await startServer(t)
  await purchase(server, {})
  await query(server, `update purchase_order set state = 'paid_unfulfilled'`)
  assert.match(bad(await examine(server))[0] ?? '', /^debts: 1 paid order waits .*order list/)
  const later = `insert into migration (version, name, sha256) values (9999, '9999-later.sql', '')`
  await query(server, later)
  assert.match(bad(await examine(server))[0] ?? '', /^version: .* 9999, which this Mayfly/)
  await query(server, `update migration set sha256 = ''`)
  assert.match(bad(await examine(server))[0] ?? '', /^version: .* by an unreleased version/)
})

test('doctor finds a clock that disagrees with the store', async (t) => {
  const server = await startServer(t)
  const hour = 3_600_000
  await server.stop()
  const at = (time: number) => query(server, 'update clock set beat_at = $1', time)
  await at(Date.now() + hour)
  assert.match(bad(await examine(server))[0] ?? '', /^time: .*one of them is wrong/)
  await at(Date.now() - hour)
  assert.deepEqual(bad(await examine(server)), [])
})

test('doctor finds a store and a secret that others can read', async (t) => {
  const server = await startServer(t)
  const secret = server.file.replace(/\.db$/, '.secret')
  await chmod(secret, 0o644)
  const found = bad(await examine(server)).join()
  assert.ok(found.startsWith(`permissions: others can read ${secret}: chmod 600`), found)
  await chmod(server.file, 0o640)
  assert.match(bad(await examine(server)).join(), /mayfly\.db and /)
})

test('doctor finds a public address that leads elsewhere', async (t) => {
  const [server, other] = [await startServer(t), await startServer(t, await ownPort())]
  await other.stop()
  const away = await examine(server, { MAYFLY_BASE_URL: other.url })
  assert.equal(away.find(({ check }) => check === 'public address')?.state, 'note')
  const stranger = await serve(t, (_request, response) => response.end('hello'))
  const found = bad(await examine(server, { MAYFLY_BASE_URL: stranger }))
  assert.match(found[0] ?? '', /^public address: .*Look at the proxy/)
})

test('doctor tells a store that may not be written from one that is damaged', async (t) => {
  const { file, url } = await startServer(t)
  const cli = await commandLine(t, url)
  await chmod(file, 0o444)
  // A stranger may look, and nothing more.
  await chmod(dirname(file), 0o755)
  const environment = { MAYFLY_DATABASE_URL: `sqlite:${file}` }
  const { code, out } = await cli.run(['doctor'], { environment, ...STRANGER })
  assert.equal(code, 1)
  assert.match(out, /"store","state":"bad","says":"\S+ is read-only\. /)
})

test('doctor finds a damaged store', async (t) => {
  const server = await startServer(t)
  await server.stop()
  const file = await open(server.file, 'r+')
  await file.write(Buffer.alloc(40_960, 'x'), 0, 40_960, 4096)
  await file.close()
  await rm(`${server.file}-wal`, { force: true })
  assert.match(bad(await examine(server))[0] ?? '', /^store: .*is damaged .*Restore a backup/)
  await writeFile(server.file, 'This is not a database.'.repeat(100))
  assert.match(bad(await examine(server))[0] ?? '', /^store: .*cannot be read: .*not a database/)
})

test('doctor finds a node that is away, behind, on another network, or of another password', async (t) => {
  const folder = await temporaryFolder(t)
  const info = { nodeId: LEDGER_NODE_ID, channels: [], chain: 'regtest', blockHeight: 433 }
  const node = { status: 200, answer: info as object, url: '' }
  const url = await serve(t, (_request, response) =>
    response.writeHead(node.status).end(JSON.stringify(node.answer)),
  )
  const port = Number(new URL(url).port)
  const found = async (at: number, network = 'regtest'): Promise<string> => {
    const { out, err } = await runCommand(['doctor', '--json'], {
      MAYFLY_DATABASE_URL: `sqlite:${folder}/none.db`,
      MAYFLY_LIGHTNING_URL: `phoenixd+http://:hunter2@127.0.0.1:${at}`,
      MAYFLY_NETWORK: network,
    })
    assert.equal((out + err).includes('hunter2'), false)
    return bad(JSON.parse(out)).join()
  }
  assert.equal(await found(port), '')
  assert.match(
    await found(await freePort()),
    /^node: .*nothing at http:\S+ speaks HTTP as phoenixd does/,
  )
  assert.match(await found(port, 'mainnet'), /^node: it is on regtest, and MAYFLY_NETWORK says mai/)
  node.answer = { ...info, blockHeight: undefined }
  assert.match(await found(port), /^node: it is not in sync with regtest yet/)
  node.status = 401
  assert.match(await found(port), /^node: .*password/)
})

test('doctor finds a service that cannot sell, and a clock that is off by its date', async (t) => {
  const url = await serve(t, (_request, response) => {
    response.setHeader('date', new Date(Date.now() - 120_000).toUTCString())
    response.end('{"checkoutEnabled":false}')
  })
  const found = bad(await examine({ url, file: `${await temporaryFolder(t)}/x.db` }))
  assert.equal(found.length, 2)
  assert.match(found[0] ?? '', /^service: .* answers but cannot sell\. Its log/)
  assert.match(found[1] ?? '', /^clock: it differs .* by 1(?:19|2\d) s/)
})

test('doctor asks the service where its own settings have it, unless MAYFLY_URL says otherwise', async (t) => {
  const server = await startServer(t)
  const { port } = new URL(server.url)
  const asked = async (environment: Record<string, string>): Promise<string> => {
    const { out } = await runCommand(['doctor', '--json'], {
      MAYFLY_DATABASE_URL: `sqlite:${server.file}`,
      ...environment,
    })
    return (JSON.parse(out) as Finding[]).find(({ check }) => check === 'service')?.says ?? ''
  }
  const found = `${server.url} answers and can sell`
  assert.equal(await asked({ MAYFLY_PORT: port }), found)
  assert.equal(
    await asked({ MAYFLY_PORT: port, MAYFLY_HOST: '0.0.0.0', MAYFLY_SIMULATOR: 'public' }),
    found,
  )
  assert.equal(await asked({ MAYFLY_PORT: '1', MAYFLY_URL: server.url }), found)
  const { out } = await runCommand(['catalog', '--json'], { MAYFLY_PORT: port })
  assert.match(out, /"checkoutEnabled":true/)
})
