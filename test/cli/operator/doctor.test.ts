import assert from 'node:assert/strict'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { purchase } from '../../support/buying.ts'
import { runCommand } from '../../support/command.ts'
import { type After, temporaryFolder } from '../../support/folder.ts'
import { aPostgresDatabase } from '../../support/postgres.ts'
import { startServer, type TestServer } from '../../support/server.ts'
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

async function aFile(t: After, text: string): Promise<string> {
  const file = join(await temporaryFolder(t), 'a.json')
  await writeFile(file, text)
  return file
}

suite('doctor', () => {
  test('doctor finds nothing bad where nothing is', async (t) => {
    const server = await startServer(t)
    await purchase(server, {})
    assert.deepEqual(bad(await examine(server, { MAYFLY_BASE_URL: server.url })), [])
  })

  test('doctor finds files of plans, rates and locations that would stop a start', async (t) => {
    const server = await startServer(t)
    for (const [name, text, says] of [
      [
        'MAYFLY_CATALOG',
        '{"catch":{"spark":{"priceSats":0}}}',
        /^plans: .*catch\.spark\.priceSats/,
      ],
      ['MAYFLY_CATALOG', '{"coffee":{}}', /^plans: .*coffee/],
      ['MAYFLY_RATE_LIMITS', '{"quota":1}', /^rates: .*quota/],
      ['MAYFLY_GEOIP_DATABASE', 'not a database', /^locations: MAYFLY_GEOIP_DATABASE/],
      ['MAYFLY_CATALOG', '{', /^configuration: MAYFLY_CATALOG/],
    ] as const) {
      const [found = ''] = bad(await examine(server, { [name]: await aFile(t, text) }))
      assert.match(found, says)
    }
  })

  test('doctor finds a simulator that gives everything away, and hosts that strangers could reach', async (t) => {
    const server = await startServer(t)
    const [open = ''] = bad(await examine(server, { MAYFLY_HOST: '0.0.0.0' }))
    assert.match(open, /^simulator: .*MAYFLY_SIMULATOR=public/)
    const found = bad(
      await examine(server, {
        MAYFLY_NETWORK: 'mainnet',
        MAYFLY_ALERT_ALLOWED_HOSTS: 'a.example:80',
      }),
    )
    assert.ok(found.some((line) => /^alerts: MAYFLY_ALERT_ALLOWED_HOSTS/.test(line)))
  })

  test('doctor finds a store that belongs to another node or network', async (t) => {
    const server = await startServer(t)
    const found = bad(await examine(server, { MAYFLY_NETWORK: 'mainnet' }))
    assert.match(found[0] ?? '', /^node of the store: it belongs to simulator on regtest/)
  })

  test('doctor finds a secret that is not the one of the orders', async (t) => {
    const server = await startServer(t)
    await purchase(server, {})
    const other = { MAYFLY_SECRET: '22'.repeat(32) }
    assert.match(
      bad(await examine(server, other))[0] ?? '',
      /^secret: MAYFLY_SECRET is not what 1 open/,
    )
    await query(server, `update purchase_order set state = 'dead'`)
    assert.deepEqual(bad(await examine(server, other)), [])
  })

  test('doctor finds what is owed', async (t) => {
    const server = await startServer(t)
    await purchase(server, {})
    await query(server, `update purchase_order set state = 'paid_unfulfilled'`)
    assert.match(bad(await examine(server))[0] ?? '', /^debts: 1 paid order waits .*order list/)
  })

  test('doctor finds a clock that disagrees with the store', async (t) => {
    const server = await startServer(t)
    const hour = 3_600_000
    await server.stop()
    const at = (time: number) =>
      query(server, `update meta set value = $1 where name = 'clock_seen_at'`, String(time))
    await at(Date.now() + hour)
    assert.match(bad(await examine(server))[0] ?? '', /^time: .*mayfly clock accept/)
    await at(Date.now() - hour)
    const findings = await examine(server)
    assert.deepEqual(bad(findings), [])
    assert.match(findings.find(({ check }) => check === 'time')?.says ?? '', /deletes nothing/)
  })

  test('doctor finds a store of a newer Mayfly', async (t) => {
    const server = await startServer(t)
    await query(server, `insert into migration (version, name) values (9999, '9999-later.sql')`)
    assert.match(bad(await examine(server))[0] ?? '', /^version: a newer Mayfly .*9999/)
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
    const [server, other] = [await startServer(t), await startServer(t)]
    await other.stop()
    const away = await examine(server, { MAYFLY_BASE_URL: other.url })
    assert.equal(away.find(({ check }) => check === 'public address')?.state, 'note')
    const { createServer } = await import('node:http')
    const stranger = createServer((_request, response) => response.end('hello'))
    await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve))
    t.after(() => stranger.close())
    const { port } = stranger.address() as { port: number }
    const found = bad(await examine(server, { MAYFLY_BASE_URL: `http://127.0.0.1:${port}` }))
    assert.match(found[0] ?? '', /^public address: .*Look at the proxy/)
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

  test('doctor looks into a PostgreSQL store alike, and changes nothing in it', async () => {
    const url = await aPostgresDatabase()
    const environment = {
      MAYFLY_DATABASE_URL: url,
      MAYFLY_SECRET: '11'.repeat(32),
      MAYFLY_URL: 'http://127.0.0.1:9',
    }
    const empty: Finding[] = JSON.parse((await runCommand(['doctor', '--json'], environment)).out)
    assert.equal(empty.find(({ check }) => check === 'content')?.state, 'note')
    await runCommand(['order', 'list'], environment)
    const migrated = JSON.parse((await runCommand(['doctor', '--json'], environment)).out)
    assert.deepEqual(bad(migrated), [])
    await query(
      { databaseUrl: url },
      `insert into purchase_order (order_id, secret_id, key_hash, request_hash, product, plan_id, plan,
         terms, memo, amount_sats, client_network, state, created_at, claimed_at, looked_up_at)
       values ('order_x', 'x', '', '', 'catch', 'spark', '{}', 'null', '', 1, '', 'paid_unfulfilled', 1, 1, 1)`,
    )
    const owed = JSON.parse((await runCommand(['doctor', '--json'], environment)).out)
    assert.match(bad(owed)[0] ?? '', /^debts: 1 paid order/)
  })
})
