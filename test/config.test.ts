import assert from 'node:assert/strict'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { readPlans, refuseUnknownProducts } from '../src/catalog.ts'
import { CATCH_PLANS, CatchPlan } from '../src/catch/schema.ts'
import { type CatchCapability, createMayfly } from '../src/client/index.ts'
import { type Config, ConfigError, OPTIONS, readConfig } from '../src/config.ts'
import { migrate } from '../src/db/migrate.ts'
import { openSqlite } from '../src/db/sqlite.ts'
import { DEFAULT_RATES } from '../src/http/limits.ts'
import { BACKEND_FORMS } from '../src/lightning/backend.ts'
import { readRates } from '../src/rates.ts'
import { secretBeside } from '../src/secret-file.ts'
import { bindStore } from '../src/store-identity.ts'
import { temporaryFolder } from './support/folder.ts'
import { type Program, refusedStart, startProgram } from './support/program.ts'

const SECRET = '5e'.repeat(32)
const OLDER = 'a1'.repeat(32)
const LND = 'lnd+https://127.0.0.1:8080?macaroon=/lnd/invoice.macaroon&cert=/lnd/tls.cert'
const PHOENIXD = 'phoenixd+http://:hunter2@127.0.0.1:9740'
const CLN = 'cln+https://127.0.0.1:3010?rune=/cln/rune&cert=/cln/ca.pem'
const NWC = 'nostr+walletconnect://ab?relay=wss://relay.example&secret=cd'
const bytes = (hex: string) => new Uint8Array(Buffer.from(hex, 'hex'))

const DEFAULTS: Config = {
  host: '127.0.0.1',
  port: 8402,
  baseUrl: null,
  databaseUrl: { kind: 'sqlite', file: 'data/mayfly.db' },
  lightningUrl: { kind: 'simulator', url: 'simulator:' },
  network: null,
  secrets: null,
  catalog: null,
  rateLimits: 'on',
  geoipDatabase: [],
  unpaidBytes: { perNetwork: 67_108_864, inAll: 1_073_741_824 },
  gate: 'off',
  gateAllowedHosts: new Set(),
  quoteSeconds: 900,
  trustedProxies: [],
  simulator: 'local',
  url: 'http://127.0.0.1:8402',
  walletUrl: null,
  maxSats: 1000,
  drainSeconds: 0,
  metricsHost: '127.0.0.1',
  metricsPort: null,
  logLevel: 'info',
}

/** What a text is read as, for every option. */
const GOOD: [keyof Config, string, unknown][] = [
  ['host', '0.0.0.0', '0.0.0.0'],
  ['host', '::1', '::1'],
  ['host', 'mayfly.internal', 'mayfly.internal'],
  ['port', '0', 0],
  ['port', '65535', 65_535],
  ['baseUrl', 'https://mayfly.example', 'https://mayfly.example'],
  ['baseUrl', 'http://localhost:8402/', 'http://localhost:8402'],
  ['baseUrl', 'https://[2001:db8::1]:8443', 'https://[2001:db8::1]:8443'],
  ['databaseUrl', 'sqlite:mayfly.db', { kind: 'sqlite', file: 'mayfly.db' }],
  ['databaseUrl', 'sqlite:/var/lib/m.db', { kind: 'sqlite', file: '/var/lib/m.db' }],
  ['databaseUrl', 'sqlite:///var/lib/m.db', { kind: 'sqlite', file: '/var/lib/m.db' }],
  [
    'databaseUrl',
    'postgres://m:hunter2@db.internal:5433/mayfly?sslmode=verify-full&pool=20',
    {
      kind: 'postgres',
      url: 'postgres://m:hunter2@db.internal:5433/mayfly?sslmode=verify-full&pool=20',
    },
  ],
  [
    'databaseUrl',
    'postgresql:///m?host=/run',
    { kind: 'postgres', url: 'postgresql:///m?host=/run' },
  ],
  ['lightningUrl', 'simulator:', { kind: 'simulator', url: 'simulator:' }],
  ['lightningUrl', LND, { kind: 'lnd', url: LND }],
  ['lightningUrl', PHOENIXD, { kind: 'phoenixd', url: PHOENIXD }],
  ['lightningUrl', CLN, { kind: 'cln', url: CLN }],
  ['lightningUrl', NWC, { kind: 'nwc', url: NWC }],
  ['network', 'mainnet', 'mainnet'],
  ['network', 'regtest', 'regtest'],
  ['network', 'signet', 'signet'],
  ['secrets', SECRET, [bytes(SECRET)]],
  ['secrets', SECRET.toUpperCase(), [bytes(SECRET)]],
  ['secrets', `${SECRET}, ${OLDER}`, [bytes(SECRET), bytes(OLDER)]],
  ['quoteSeconds', '60', 60],
  ['quoteSeconds', '86400', 86_400],
  ['trustedProxies', '10.0.0.0/8, ::1,192.0.2.1', ['10.0.0.0/8', '::1', '192.0.2.1']],
  ['rateLimits', 'off', 'off'],
  ['geoipDatabase', 'v4.mmdb, /geo/v6.mmdb', ['v4.mmdb', '/geo/v6.mmdb']],
  ['unpaidBytes', '30, 1000000', { perNetwork: 30, inAll: 1_000_000 }],
  ['gate', 'on', 'on'],
  [
    'gateAllowedHosts',
    '127.0.0.1:9200, LNURL.test:443',
    new Set(['127.0.0.1:9200', 'lnurl.test:443']),
  ],
  ['simulator', 'public', 'public'],
  ['url', 'https://mayfly.example/', 'https://mayfly.example'],
  ['walletUrl', 'simulator:', 'simulator:'],
  ['maxSats', '0', 0],
  ['drainSeconds', '300', 300],
  ['metricsHost', '0.0.0.0', '0.0.0.0'],
  ['metricsPort', 'off', null],
  ['metricsPort', '0', 0],
  ['metricsPort', '9464', 9_464],
  ['logLevel', 'debug', 'debug'],
]

/** What is refused, with what the message says must be. */
const BAD: [keyof Config, string[], string][] = [
  ['host', ['', 'my host'], 'an address or host name'],
  ['port', ['', '-1', '65536', '80a', '8402.0', '1e3', ' 80', '٣'], 'an integer from 0 to 65535'],
  [
    'baseUrl',
    [
      'mayfly.example',
      'ftp://mayfly.example',
      'https://mayfly.example/path',
      'https://mayfly.example/?q',
      'https://mayfly.example/#h',
      'https://user:hunter2@mayfly.example',
    ],
    'an http or https URL without path, query or credentials',
  ],
  [
    'databaseUrl',
    [
      '',
      'sqlite:',
      'mayfly.db',
      'mysql://u:hunter2@host/db',
      'postgres:',
      'postgres://u:hunter2@host',
      'postgres://u:hunter2@host/',
      'postgres://u:hunter2@host:port/db',
    ],
    '`sqlite:<file>` or `postgres://user:password@host:5432/database`',
  ],
  [
    'databaseUrl',
    ['postgres://host/db?pool=', 'postgres://host/db?pool=3', 'postgres://host/db?pool=1000'],
    'a URL whose `pool` is a number of connections from 4 to 999',
  ],
  [
    'lightningUrl',
    ['', 'simulator', 'SIMULATOR:', 'lnd://hunter2@host', 'cln+http://host', 'phoenixd:'],
    BACKEND_FORMS,
  ],
  ['network', ['testnet', 'Mainnet', 'bitcoin'], 'one of mainnet, regtest, signet'],
  [
    'secrets',
    [
      'hunter2',
      SECRET.slice(1),
      `${SECRET}0`,
      `${SECRET},`,
      `,${SECRET}`,
      `${SECRET},hunter2`,
      `${SECRET},${OLDER},${OLDER}`,
      `0x${SECRET.slice(2)}`,
    ],
    '32 bytes in hex, or two of them',
  ],
  ['gate', ['', 'yes', 'ON'], 'one of off, on'],
  [
    'gateAllowedHosts',
    ['127.0.0.1', 'http://127.0.0.1:80', 'a:b', 'host:80/path', ','],
    'a comma-separated list of `host:port`',
  ],
  [
    'unpaidBytes',
    ['', '1', '0,5', '1,2,3', '1e3,1e4', '-1,5'],
    'two numbers of bytes, comma-separated: per client network, and in all',
  ],
  ['drainSeconds', ['', '-1', '301', '1s'], 'an integer from 0 to 300'],
  ['metricsHost', ['', 'a b'], 'an address or host name'],
  ['metricsPort', ['', 'on', '65536', '-1'], '`off`, or an integer from 0 to 65535'],
  ['quoteSeconds', ['59', '86401', 'fifteen minutes'], 'an integer from 60 to 86400'],
  [
    'trustedProxies',
    ['proxy.internal', '10.0.0.0/33', '::/129', '10.0.0.0/8/8', '10.0.0/8', '10.0.0.1/x'],
    'a comma-separated list of addresses or CIDR blocks',
  ],
  ['geoipDatabase', ['a,b,c', 'a,', ','], 'one file or two'],
  ['simulator', ['', 'yes', 'Public'], 'one of local, public'],
  [
    'url',
    ['', 'mayfly.example', 'https://user:hunter2@mayfly.example'],
    'an http or https URL without path, query or credentials',
  ],
  ['walletUrl', ['lnd+https://hunter2 @host'], 'the address of a wallet'],
  ['maxSats', ['', '-1', '1.5', 'all'], 'an integer from 0 to 100000000'],
  ['logLevel', ['', 'loud', 'INFO'], 'one of trace, debug, info, warn, error, fatal, silent'],
]

const SECRET_OPTIONS = (Object.keys(OPTIONS) as (keyof Config)[]).filter(
  (key) => 'isSecret' in OPTIONS[key],
)

function messageOf(environment: Record<string, string>): string {
  try {
    readConfig(environment)
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    return error.message
  }
  return assert.fail(`${JSON.stringify(environment)} was accepted`)
}

suite('the configuration', () => {
  test('has a default for everything', () => {
    assert.deepEqual(readConfig({}), DEFAULTS)
  })

  test('reads nothing but its own names', () => {
    assert.deepEqual(readConfig({ PATH: '/bin', PORT: '80', mayfly_port: 'x' }), DEFAULTS)
  })

  test('is tested here with every option', () => {
    const files = ['catalog', 'rateLimits']
    for (const table of [GOOD, BAD]) {
      const tested = new Set([...table.map(([key]) => key), ...files])
      assert.deepEqual([...tested].sort(), Object.keys(OPTIONS).sort())
    }
  })

  for (const [key, text, expected] of GOOD) {
    test(`takes ${OPTIONS[key].name}=${text}`, () => {
      assert.deepEqual(readConfig({ [OPTIONS[key].name]: text }), { ...DEFAULTS, [key]: expected })
    })
  }

  for (const [key, texts, what] of BAD) {
    const { name } = OPTIONS[key]
    test(`says what ${name} must be, and not what it was`, () => {
      for (const text of texts) {
        assert.equal(messageOf({ [name]: text }), `${name} must be ${what}.`, `for ${text}`)
      }
    })
  }

  test('refuses a name that it does not know', () => {
    for (const name of ['MAYFLY_PROT', 'MAYFLY_', 'MAYFLY_PORT_FILE', 'MAYFLY_SECRET_FILE_FILE']) {
      assert.equal(
        messageOf({ [name]: 'hunter2' }),
        `${name} is not a setting of Mayfly. docs/operate.md lists them.`,
      )
    }
  })
})

suite('a secret in a file', () => {
  test('counts for every option that is a secret', async (t) => {
    const folder = await temporaryFolder(t)
    assert.deepEqual(SECRET_OPTIONS.sort(), ['databaseUrl', 'lightningUrl', 'secrets', 'walletUrl'])
    for (const key of SECRET_OPTIONS) {
      const [, text = '', expected] = GOOD.find(([good]) => good === key) ?? []
      const file = join(folder, key)
      await writeFile(file, `${text}\n`)
      assert.deepEqual(readConfig({ [`${OPTIONS[key].name}_FILE`]: file }), {
        ...DEFAULTS,
        [key]: expected,
      })
    }
  })

  test('and in the environment too is one too many', async (t) => {
    const file = join(await temporaryFolder(t), 'secret')
    await writeFile(file, SECRET)
    assert.equal(
      messageOf({ MAYFLY_SECRET: SECRET, MAYFLY_SECRET_FILE: file }),
      'Set MAYFLY_SECRET or MAYFLY_SECRET_FILE, not both.',
    )
  })

  test('that is not there, or is bad, is said without its content', async (t) => {
    const folder = await temporaryFolder(t)
    const missing = join(folder, 'missing')
    assert.match(
      messageOf({ MAYFLY_SECRET_FILE: missing }),
      /^MAYFLY_SECRET_FILE cannot be read: ENOENT: .*\/missing'\.$/,
    )
    const bad = join(folder, 'bad')
    await writeFile(bad, 'hunter2')
    assert.equal(
      messageOf({ MAYFLY_SECRET_FILE: bad }),
      'MAYFLY_SECRET must be 32 bytes in hex, or two of them.',
    )
  })
})

suite('the catalogue file', () => {
  async function read(t: { after(work: () => unknown): unknown }, content: string) {
    const file = join(await temporaryFolder(t), 'catalog.json')
    await writeFile(file, content)
    const { catalog } = readConfig({ MAYFLY_CATALOG: file })
    refuseUnknownProducts(catalog, ['catch'])
    return readPlans(catalog, 'catch', CatchPlan, CATCH_PLANS)
  }

  test('left out means the built-in plans', () => {
    assert.deepEqual(readPlans(null, 'catch', CatchPlan, CATCH_PLANS), CATCH_PLANS)
  })

  test('changes the fields that it names, and no others', async (t) => {
    const plans = await read(t, '{"catch": {"spark": {"priceSats": 7, "available": false}}}')
    assert.deepEqual(plans, {
      ...CATCH_PLANS,
      spark: { ...CATCH_PLANS.spark, priceSats: 7, available: false },
    })
  })

  const refused: [string, string, RegExp][] = [
    ['no JSON', '{"catch":', /^MAYFLY_CATALOG must be a readable JSON file \(.+\)\.$/],
    ['a list', '[]', /^MAYFLY_CATALOG: the file must be an object\.$/],
    [
      'a product that nobody sells',
      '{"cath": {}}',
      /^MAYFLY_CATALOG: the file has no member cath\.$/,
    ],
    [
      'a plan that is unknown',
      '{"catch": {"gold": {}}}',
      /^MAYFLY_CATALOG: catch has no member gold\.$/,
    ],
    [
      'a plan that is no object',
      '{"catch": {"spark": 7}}',
      /^MAYFLY_CATALOG: catch\.spark must be an object\.$/,
    ],
    [
      'a price of nothing',
      '{"catch": {"spark": {"priceSats": 0}}}',
      /^MAYFLY_CATALOG: catch\.spark\.priceSats .+\.$/,
    ],
    [
      'half a satoshi',
      '{"catch": {"long": {"priceSats": 0.5}}}',
      /^MAYFLY_CATALOG: catch\.long\.priceSats .+\.$/,
    ],
    [
      'a price in words',
      '{"catch": {"spark": {"priceSats": "7"}}}',
      /^MAYFLY_CATALOG: catch\.spark\.priceSats .+\.$/,
    ],
    [
      'a limit of nothing',
      '{"catch": {"spark": {"requestLimit": 0}}}',
      /^MAYFLY_CATALOG: catch\.spark\.requestLimit .+\.$/,
    ],
    [
      'a field that is unknown',
      '{"catch": {"spark": {"pricesats": 7}}}',
      /^MAYFLY_CATALOG: catch\.spark.* .+\.$/,
    ],
  ]
  for (const [what, content, message] of refused) {
    test(`with ${what} stops the start, and says where`, async (t) => {
      await assert.rejects(read(t, content), (error) => {
        assert.ok(error instanceof ConfigError)
        assert.match(error.message, message)
        return true
      })
    })
  }

  test('that is not there stops the start', () => {
    assert.match(
      messageOf({ MAYFLY_CATALOG: '/nowhere/catalog.json' }),
      /^MAYFLY_CATALOG must be a readable JSON file \(ENOENT: .+\)\.$/,
    )
  })
})

suite('the rate limits', () => {
  const { quote: _quote, openOrders: _openOrders, ...onSimulator } = DEFAULT_RATES

  test('are the defaults, of which the simulator has none for what costs nothing there', () => {
    assert.deepEqual(readRates('on', false), DEFAULT_RATES)
    assert.deepEqual(readRates('on', true), onSimulator)
    assert.deepEqual(readRates('off', false), {})
  })

  test('are changed by the file where it names them, and switched off by null', async (t) => {
    const file = join(await temporaryFolder(t), 'rates.json')
    const changes = { quote: { perMinute: 7.5 }, poll: { perMinute: 9, burst: 2 }, catalog: null }
    await writeFile(file, JSON.stringify(changes))
    const { catalog: _catalog, ...rest } = DEFAULT_RATES
    assert.deepEqual(readRates(readConfig({ MAYFLY_RATE_LIMITS: file }).rateLimits, false), {
      ...rest,
      quote: { perMinute: 7.5, burst: 8 },
      poll: { perMinute: 9, burst: 2 },
    })
  })

  const refused: [string, unknown][] = [
    ['a list', []],
    ['a name that is unknown', { quotes: { perMinute: 1 } }],
    ['a rate of nothing', { quote: { perMinute: 0 } }],
    ['a rate in words', { quote: { perMinute: '7' } }],
    ['half a burst', { quote: { perMinute: 1, burst: 0.5 } }],
    ['a member that is unknown', { quote: { perMinute: 1, perHour: 2 } }],
    ['no open orders', { openOrders: 0 }],
  ]
  for (const [what, content] of refused) {
    test(`of a file with ${what} stop the start`, () => {
      assert.throws(() => readRates(content, false), /^ConfigError: MAYFLY_RATE_LIMITS: .+\.$/)
    })
  }

  test('of a file that is none stop the start', () => {
    for (const file of ['/nowhere/rates.json', 'maybe', '']) {
      assert.match(
        messageOf({ MAYFLY_RATE_LIMITS: file }),
        /^MAYFLY_RATE_LIMITS must be `on`, `off` or a readable JSON file \(ENOENT: .+\)\.$/,
      )
    }
  })
})

suite('the secret beside the database', () => {
  test('is made once, for its owner alone', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const secret = secretBeside(file)
    assert.equal(secret.length, 32)
    assert.deepEqual(secretBeside(file), secret)
    const kept = file.replace(/\.db$/, '.secret')
    assert.equal((await stat(kept)).mode & 0o777, 0o600)
    assert.equal(await readFile(kept, 'utf8'), `${Buffer.from(secret).toString('hex')}\n`)
  })

  test('is another one for another database', async (t) => {
    const folder = await temporaryFolder(t)
    const [one, other] = ['one.db', 'other.db'].map((name) => secretBeside(join(folder, name)))
    assert.notDeepEqual(one, other)
  })

  test('is never made anew over a file that is not one', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const kept = file.replace(/\.db$/, '.secret')
    for (const content of ['', 'hunter2', SECRET.slice(2)]) {
      await writeFile(kept, content)
      assert.throws(
        () => secretBeside(file),
        new ConfigError(`${kept} must hold 32 bytes in hex. Restore it, or set MAYFLY_SECRET.`),
      )
      assert.equal(await readFile(kept, 'utf8'), content)
    }
  })

  test('that cannot be read stops the start with a sentence about it', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const kept = file.replace(/\.db$/, '.secret')
    // A folder in its place: it cannot be read, by root neither.
    await mkdir(kept)
    const { code, told } = await refusedStart(t, file)
    assert.match(
      told,
      /^Mayfly did not start\. \S+mayfly\.secret cannot be read or made: [^\n]+\n$/,
    )
    assert.equal(code, 1)
  })

  test('is shared by two starts at once', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const both = await Promise.all([startProgram(t, file), startProgram(t, file)])
    const kept = await readFile(file.replace(/\.db$/, '.secret'), 'utf8')
    // The same key reaches the same order through either: they derive it from one secret.
    const [one, other] = await Promise.all(both.map(({ url }) => orderId(url)))
    assert.equal(one, other)
    assert.match(kept, /^[0-9a-f]{64}\n$/)
  })
})

suite('a start that would give something away', () => {
  const REFUSAL =
    'Mayfly did not start. The simulator takes no real money, and MAYFLY_HOST or MAYFLY_BASE_URL is not loopback. ' +
    'Set MAYFLY_LIGHTNING_URL to a real node, or MAYFLY_SIMULATOR=public to give everything away.\n'

  test('with the simulator on a public host or base URL stops', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const starts = [
      { MAYFLY_HOST: '0.0.0.0' },
      { MAYFLY_BASE_URL: 'https://mayfly.example' },
      { MAYFLY_HOST: '::', MAYFLY_BASE_URL: 'http://localhost:8402' },
    ]
    assert.deepEqual(
      await Promise.all(starts.map((environment) => refusedStart(t, file, { environment }))),
      starts.map(() => ({ code: 1, told: REFUSAL })),
    )
  })

  test('with the simulator in public needs to be told so', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const { url } = await startProgram(t, file, {
      environment: { MAYFLY_BASE_URL: 'https://mayfly.example', MAYFLY_SIMULATOR: 'public' },
    })
    assert.equal((await fetch(`${url}/health`)).status, 200)
  })

  test('on another network than the node’s stops', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    assert.deepEqual(await refusedStart(t, file, { environment: { MAYFLY_NETWORK: 'mainnet' } }), {
      code: 1,
      told: 'Mayfly did not start. MAYFLY_NETWORK is mainnet, and the node is on regtest.\n',
    })
  })

  test('on a store of another backend or network stops', async (t) => {
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
      code: 1,
      told:
        'Mayfly did not start. This store belongs to lnd on mainnet, and MAYFLY_LIGHTNING_URL is simulator on regtest. ' +
        'Restore the setting, or choose another MAYFLY_DATABASE_URL.\n',
    })
  })
})

suite('a new secret', () => {
  test('takes over the stored seeds; a wrong one stops the start and harms nothing', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const start = (secret: string) =>
      startProgram(t, file, { environment: { MAYFLY_SECRET: secret } })
    const old = await start(OLDER)
    const { orderId: id, bolt11 } = await quote(old.url)
    await pay(old.url, bolt11)
    await old.saw('order.settled')
    await old.kill()

    const refused = await refusedStart(t, file, { environment: { MAYFLY_SECRET: SECRET } })
    assert.deepEqual(refused, {
      code: 1,
      told:
        'Mayfly did not start. MAYFLY_SECRET is not the one that 1 open or uncollected order was made under. ' +
        'Start with that secret, or add it after a comma.\n',
    })

    const both = await start(`${SECRET},${OLDER}`)
    const polled = await fetch(`${both.url}/api/payments/${id}`)
    assert.equal(polled.status, 200)
    const { resource } = (await polled.json()) as { resource: CatchCapability }
    const status = ({ url }: Program) => createMayfly({ baseUrl: url }).catch(resource).status()
    const before = await status(both)
    await both.kill()

    const renewed = await start(SECRET)
    assert.deepEqual(await status(renewed), before)
  })
})

const KEY = '0f6b2c4e-8a1d-4e7b-9c3f-5d2a1b0c9e8f'

async function quote(url: string): Promise<{ orderId: string; bolt11: string }> {
  const response = await fetch(`${url}/api/payments/catch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': KEY },
    body: JSON.stringify({ planId: 'spark' }),
  })
  assert.equal(response.status, 402)
  return (await response.json()) as { orderId: string; bolt11: string }
}

const orderId = async (url: string): Promise<string> => (await quote(url)).orderId

async function pay(url: string, bolt11: string): Promise<void> {
  const response = await fetch(`${url}/simulator/pay`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ bolt11 }),
  })
  assert.equal(response.status, 200)
}
