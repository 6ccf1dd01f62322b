import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { BACKEND_FORMS } from '../../src/lightning/urls.ts'
import { type Config, OPTIONS, readConfig, serviceUrl } from '../../src/service/config.ts'
import { temporaryFolder } from '../support/folder.ts'
import { messageOf } from './refusals.ts'

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
  blockedNetworks: [],
  termsUrl: null,
  privacyUrl: null,
  contact: null,
  rateSource: null,
  egressNetworks: [],
  maxSalesPerDay: null,
  maxSalesPerNetworkPerDay: null,
  geoipDatabase: [],
  unpaidBytes: { perNetwork: 67_108_864, inAll: 1_073_741_824 },
  mcp: 'on',
  gate: 'off',
  outbound: 'on',
  allowedHosts: new Set(),
  outboundProxy: null,
  outboundBlockedHosts: new Set(),
  quoteSeconds: 900,
  switchWaitSeconds: 3600,
  trustedProxies: [],
  simulator: 'local',
  url: null,
  walletUrl: null,
  maxSats: 1000,
  maxSatsPerDay: 2000,
  salesKeptDays: 3650,
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
  ['salesKeptDays', '1', 1],
  ['egressNetworks', '192.0.2.0/24', ['192.0.2.0/24']],
  ['blockedNetworks', '192.0.2.0/24, 2001:db8::/32,', ['192.0.2.0/24', '2001:db8::/32']],
  ['maxSalesPerDay', '1', 1],
  ['termsUrl', 'https://mayfly.example/terms?v=1&l=en', 'https://mayfly.example/terms?v=1&l=en'],
  ['privacyUrl', 'https://mayfly.example', 'https://mayfly.example/'],
  [
    'rateSource',
    'https://rates.example/v1?key=1#EUR',
    { url: 'https://rates.example/v1?key=1', currency: 'EUR' },
  ],
  [
    'rateSource',
    'http://127.0.0.1:8999/api/v1/prices#USD',
    { url: 'http://127.0.0.1:8999/api/v1/prices', currency: 'USD' },
  ],
  ['contact', 'https://mayfly.example/contact', 'https://mayfly.example/contact'],
  ['contact', 'abuse+1@mayfly.example', 'abuse+1@mayfly.example'],
  ['maxSalesPerNetworkPerDay', '1000000', 1_000_000],
  ['salesKeptDays', '36500', 36_500],
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
    'postgres://m@a:5432,b:5433/m?target_session_attrs=read-write',
    { kind: 'postgres', url: 'postgres://m@a:5432,b:5433/m?target_session_attrs=read-write' },
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
  ['switchWaitSeconds', '60', 60],
  ['switchWaitSeconds', '604800', 604_800],
  ['trustedProxies', '10.0.0.0/8, ::1,192.0.2.1', ['10.0.0.0/8', '::1', '192.0.2.1']],
  ['rateLimits', 'off', 'off'],
  ['geoipDatabase', 'v4.mmdb, /geo/v6.mmdb', ['v4.mmdb', '/geo/v6.mmdb']],
  ['unpaidBytes', '30, 1000000', { perNetwork: 30, inAll: 1_000_000 }],
  [
    'unpaidBytes',
    '1099511627776,1099511627776',
    { perNetwork: 1_099_511_627_776, inAll: 1_099_511_627_776 },
  ],
  ['mcp', 'off', 'off'],
  ['gate', 'on', 'on'],
  ['allowedHosts', '127.0.0.1:9, LNURL.test:443', new Set(['127.0.0.1:9', 'lnurl.test:443'])],
  ['allowedHosts', '[::1]:9', new Set(['[::1]:9'])],
  ['outbound', 'off', 'off'],
  ['outboundProxy', 'http://u:hunter2@proxy:3128', new URL('http://u:hunter2@proxy:3128')],
  ['outboundBlockedHosts', 'Hooks.example, evil.test', new Set(['hooks.example', 'evil.test'])],
  ['simulator', 'public', 'public'],
  ['url', 'https://mayfly.example/', 'https://mayfly.example'],
  ['walletUrl', 'simulator:', 'simulator:'],
  ['maxSats', '0', 0],
  ['maxSatsPerDay', '0', 0],
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
      'sqlite:file:mayfly.db',
      'sqlite:file:/var/lib/m.db?mode=memory',
      'mayfly.db',
      'mysql://u:hunter2@host/db',
      'postgres:',
      'postgres://u:hunter2@host',
      'postgres://u:hunter2@host/',
      'postgres://u:hunter2@host:port/db',
      'postgres://u:hunter2@host,other:port/db',
    ],
    '`sqlite:<file>` or `postgres://user:password@host:5432/database`',
  ],
  [
    'databaseUrl',
    ['postgres://host/db?pool=', 'postgres://host/db?pool=3', 'postgres://host/db?pool=1000'],
    'a URL whose `pool` is a number of connections from 4 to 999',
  ],
  [
    'databaseUrl',
    ['postgres://host/db?target_session_attrs=any'],
    'a URL whose `target_session_attrs`, if it is there, is `read-write`',
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
  ['mcp', ['', 'yes', 'OFF'], 'one of on, off'],
  ['gate', ['', 'yes', 'ON'], 'one of off, on'],
  [
    'allowedHosts',
    ['127.0.0.1', 'http://127.0.0.1:80', 'a:b', 'a:99999', 'u@a:1', 'host:80/path', 'a:1,', ','],
    'a comma-separated list of `host:port`',
  ],
  ['outbound', ['', 'yes', 'OFF'], 'one of on, off'],
  [
    'outboundProxy',
    ['proxy:3128', 'https://proxy', 'socks5://proxy', 'http://proxy/path', 'http://proxy/?q'],
    'an http URL without path or query',
  ],
  [
    'outboundBlockedHosts',
    [
      'https://evil.test',
      'evil.test:443',
      'evil.test:80',
      'evil.test/path',
      'evil test',
      ',',
      '*.evil.test',
      '.evil.test',
      'evil.test.',
    ],
    'a comma-separated list of host names, without `*`: names below them count, too',
  ],
  [
    'unpaidBytes',
    ['', '1', '0,5', '10,5', '1,2,3', '1e3,1e4', '-1,5', '1099511627777,1', '1,1099511627777'],
    'two numbers of bytes from 1 to 1099511627776, comma-separated: per client network, and at least as many in all',
  ],
  ['drainSeconds', ['', '-1', '301', '1s'], 'an integer from 0 to 300'],
  ['metricsHost', ['', 'a b'], 'an address or host name'],
  ['metricsPort', ['', 'on', '65536', '-1'], '`off`, or an integer from 0 to 65535'],
  ...(['termsUrl', 'privacyUrl'] as const).map((name): [keyof Config, string[], string] => [
    name,
    [
      'http://mayfly.example',
      'javascript:alert(1)',
      'terms',
      'https://a:b@mayfly.example',
      `https://mayfly.example/${'a'.repeat(500)}`,
    ],
    'an https URL without credentials',
  ]),
  [
    'rateSource',
    [
      'https://rates.example/v1',
      'https://rates.example/v1#eur',
      'https://rates.example/v1#EURO',
      'http://rates.example/v1#EUR',
      'https://a:b@rates.example/v1#EUR',
      'rates#EUR',
      `https://rates.example/${'a'.repeat(500)}#EUR`,
    ],
    'an https URL without credentials that ends with a currency, such as `#EUR`',
  ],
  [
    'contact',
    [
      'me',
      'mailto:me@mayfly.example',
      'me@mayfly',
      '"><b@mayfly.example',
      'a&b@mayfly.example',
      'http://mayfly.example',
    ],
    'an https URL without credentials, or an e-mail address',
  ],
  ['maxSalesPerDay', ['0', '-1', '1000001', 'ever'], 'an integer from 1 to 1000000'],
  ['maxSalesPerNetworkPerDay', ['0', 'ever'], 'an integer from 1 to 1000000'],
  [
    'blockedNetworks',
    ['192.0.2.0/33', '192.0.2', '192.0.2.0/24;2001:db8::/32', '/dev/null/networks', 'fe80::1%lo'],
    'a comma-separated list of addresses or CIDR blocks, or a readable file with one in each line',
  ],
  [
    'egressNetworks',
    ['192.0.2.0/33', 'agents.example'],
    'a comma-separated list of addresses or CIDR blocks, or a readable file with one in each line',
  ],
  ['salesKeptDays', ['', '0', '36501', 'ever'], 'an integer from 1 to 36500'],
  ['quoteSeconds', ['59', '86401', 'fifteen minutes'], 'an integer from 60 to 86400'],
  ['switchWaitSeconds', ['59', '604801', 'an hour'], 'an integer from 60 to 604800'],
  [
    'trustedProxies',
    ['proxy.internal', '10.0.0.0/33', '::/129', '10.0.0.0/8/8', '10.0.0/8', '10.0.0.1/x'],
    'a comma-separated list of addresses or CIDR blocks',
  ],
  ['geoipDatabase', ['a,b,c', 'a,', ','], 'one file or two'],
  ['simulator', ['', 'yes', 'Public'], 'one of local, public'],
  [
    'url',
    ['mayfly.example', 'https://user:hunter2@mayfly.example'],
    'an http or https URL without path, query or credentials',
  ],
  ['walletUrl', ['lnd+https://hunter2 @host'], 'the address of a wallet'],
  ['maxSats', ['', '-1', '1.5', 'all'], 'an integer from 0 to 100000000'],
  ['maxSatsPerDay', ['', '-1', '1.5', 'all'], 'an integer from 0 to 100000000'],
  ['logLevel', ['', 'loud', 'INFO'], 'one of trace, debug, info, warn, error, fatal, silent'],
]

const SECRET_OPTIONS = (Object.keys(OPTIONS) as (keyof Config)[]).filter(
  (key) => 'isSecret' in OPTIONS[key],
)

suite('the configuration', () => {
  test('the configuration has a default for everything', () => {
    assert.deepEqual(readConfig({}), DEFAULTS)
  })

  test('the configuration reads nothing but its own names', () => {
    assert.deepEqual(readConfig({ PATH: '/bin', PORT: '80', mayfly_port: 'x' }), DEFAULTS)
  })

  test('each option of the configuration is tested here', () => {
    const files = ['catalog', 'rateLimits']
    for (const table of [GOOD, BAD]) {
      const tested = new Set([...table.map(([key]) => key), ...files])
      assert.deepEqual([...tested].sort(), Object.keys(OPTIONS).sort())
    }
  })

  for (const [key, text, expected] of GOOD) {
    test(`the configuration takes ${OPTIONS[key].name}=${text}`, () => {
      assert.deepEqual(readConfig({ [OPTIONS[key].name]: text }), { ...DEFAULTS, [key]: expected })
    })
  }

  for (const [key, texts, what] of BAD) {
    const { name } = OPTIONS[key]
    test(`the configuration says what ${name} must be, and not what it was`, () => {
      for (const text of texts) {
        assert.equal(messageOf({ [name]: text }), `${name} must be ${what}.`, `for ${text}`)
      }
    })
  }

  test('the commands find the service where the settings start it, unless they name another', () => {
    for (const [environment, url] of [
      [{}, 'http://127.0.0.1:8402'],
      [{ MAYFLY_PORT: '9000' }, 'http://127.0.0.1:9000'],
      [{ MAYFLY_PORT: '9000', MAYFLY_HOST: '0.0.0.0' }, 'http://127.0.0.1:9000'],
      [{ MAYFLY_HOST: '::' }, 'http://[::1]:8402'],
      [{ MAYFLY_HOST: 'fd00::7' }, 'http://[fd00::7]:8402'],
      [{ MAYFLY_HOST: 'box.lan', MAYFLY_PORT: '80' }, 'http://box.lan:80'],
      [{ MAYFLY_PORT: '0' }, 'http://127.0.0.1:8402'],
      [{ MAYFLY_PORT: '9000', MAYFLY_URL: 'https://a.example' }, 'https://a.example'],
    ] as const) {
      assert.equal(serviceUrl(readConfig(environment)), url)
    }
  })

  test('the configuration refuses a name that it does not know', () => {
    for (const name of ['MAYFLY_PROT', 'MAYFLY_', 'MAYFLY_PORT_FILE', 'MAYFLY_SECRET_FILE_FILE']) {
      assert.equal(
        messageOf({ [name]: 'hunter2' }),
        `${name} is not a setting of Mayfly. See docs/reference/settings.md.`,
      )
    }
  })
})

suite('a secret in a file', () => {
  test('a file can hold the secret of every option that is one', async (t) => {
    const folder = await temporaryFolder(t)
    assert.deepEqual(SECRET_OPTIONS.sort(), [
      'databaseUrl',
      'lightningUrl',
      'outboundProxy',
      'secrets',
      'walletUrl',
    ])
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

  test('a secret in a file and in the environment too is refused', async (t) => {
    const file = join(await temporaryFolder(t), 'secret')
    await writeFile(file, SECRET)
    assert.equal(
      messageOf({ MAYFLY_SECRET: SECRET, MAYFLY_SECRET_FILE: file }),
      'Set MAYFLY_SECRET or MAYFLY_SECRET_FILE, not both.',
    )
  })

  test('a secret in a file that is not there, or is bad, is reported without its content', async (t) => {
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

  test('an empty file stops the start: a lost secret is not one that was never set', async (t) => {
    const file = join(await temporaryFolder(t), 'empty')
    await writeFile(file, '\n')
    for (const key of SECRET_OPTIONS) {
      const { name } = OPTIONS[key]
      assert.equal(messageOf({ [`${name}_FILE`]: file }), `The file of ${name}_FILE is empty.`)
    }
  })
})

test('networks are read from a file, one in each line, and a line that is none is named by its number', async (t) => {
  const file = join(await temporaryFolder(t), 'networks.txt')
  await writeFile(file, '# spammers\n192.0.2.0/24 # since May\n\n2001:db8::/32\r\n')
  const read = () => readConfig({ MAYFLY_BLOCKED_NETWORKS: file }).blockedNetworks
  assert.deepEqual(read(), ['192.0.2.0/24', '2001:db8::/32'])
  await writeFile(file, '# spammers\n192.0.2.0/24\n\nexample.com\n')
  assert.match(messageOf({ MAYFLY_BLOCKED_NETWORKS: file }), /; line 4 is none\.$/)
  await writeFile(file, '192.0.2.1\n'.repeat(100_001))
  assert.match(messageOf({ MAYFLY_BLOCKED_NETWORKS: file }), /at most 100000 networks/)
})

test('proxies that are everybody stop the start: a stranger could then choose its own address', () => {
  for (const wide of [
    '0.0.0.0/0',
    '::/0',
    '10.0.0.0/8,128.0.0.0/1',
    '2000::/3',
    '::ffff:0:0/96',
    '::/16',
  ]) {
    assert.match(
      messageOf({ MAYFLY_TRUSTED_PROXIES: wide }),
      /^MAYFLY_TRUSTED_PROXIES must be the addresses of your proxies alone: .+ has strangers in it/,
      wide,
    )
  }
  const usual = '10.0.0.0/8,fc00::/7,::ffff:10.0.0.0/104,192.0.2.7,2400:cb00::/32'
  const { trustedProxies } = readConfig({ MAYFLY_TRUSTED_PROXIES: usual })
  assert.deepEqual(trustedProxies, usual.split(','))
})
