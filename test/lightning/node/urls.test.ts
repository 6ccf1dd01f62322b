/** The forms of MAYFLY_LIGHTNING_URL and of the files that it names: what is read, and what is said of the rest. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { readClnUrl, readLndUrl, readNwcUrl, readPhoenixdUrl } from '../../../src/lightning/urls.ts'

const PEM = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
const RUNE = `${'aZ0_-'.repeat(12)}==`
const MAX_BYTES = 16 * 1024
const KEY = 'ab'.repeat(32)
const SECRET = 'cd'.repeat(32)
/** Of secp256k1. Private keys are smaller. */
const CURVE_ORDER = 'fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141'

const runeIn = async (file: string) => (await readClnUrl(`cln+https://node?rune=${file}`)).rune
const macaroonIn = async (file: string) =>
  (await readLndUrl(`lnd+https://node?macaroon=${file}`)).macaroon

const folder = mkdtempSync(join(tmpdir(), 'mayfly-urls-'))
after(() => rmSync(folder, { recursive: true }))
for (const [name, text] of [
  ['rune', `${RUNE}\n`],
  ['created', JSON.stringify({ rune: RUNE, unique_id: '3' }, null, 3)],
  ['cert', PEM],
  ['words', 'not what was meant'],
] as const) {
  writeFileSync(join(folder, name), text)
}
writeFileSync(join(folder, 'bytes'), Uint8Array.of(0xff, 0xfe))
const inFolder = (url: string) =>
  url.replaceAll(/=(rune|created|cert|words|bytes|gone)\b/g, `=${folder}/$1`)

test('phoenixd: the URL has the password percent-encoded, and the port that phoenixd has', async () => {
  assert.deepEqual(await readPhoenixdUrl('phoenixd+http://:a%2Fb%40c@[::1]'), {
    baseUrl: 'http://[::1]:9740',
    password: 'a/b@c',
    certificate: undefined,
  })
  assert.deepEqual(
    await readPhoenixdUrl(inFolder('phoenixd+https://:hunter2@node:443?cert=cert')),
    { baseUrl: 'https://node:443', password: 'hunter2', certificate: PEM },
  )
})

const written = (text: string | Uint8Array): string => {
  writeFileSync(join(folder, 'written'), text)
  return join(folder, 'written')
}
const macaroon = Buffer.from('0201036c6e64ff00', 'hex')
/** What each secret file may hold, and what is read of it. */
const SECRETS: [read: (file: string) => Promise<unknown>, text: string | Buffer, told: string][] = [
  [runeIn, `\n${RUNE}\n`, RUNE],
  [runeIn, `{"rune":"${RUNE}","unique_id":"3"}`, RUNE],
  [runeIn, `{\n   "rune" :  "${RUNE}",\n   "unique_id": "3"\n}`, RUNE],
  [runeIn, 'a'.repeat(40), 'a'.repeat(40)],
  [runeIn, 'a'.repeat(MAX_BYTES), 'a'.repeat(MAX_BYTES)],
  [macaroonIn, macaroon, '0201036c6e64ff00'],
  [macaroonIn, `${macaroon.toString('hex').toUpperCase()}\n`, '0201036c6e64ff00'],
  [macaroonIn, Buffer.alloc(MAX_BYTES, 2), '02'.repeat(MAX_BYTES)],
]
test('a rune is read as it is or as createrune prints it, and a macaroon as LND wrote it or in hex, up to 16 KiB', async () => {
  for (const [read, text, told] of SECRETS) assert.equal(await read(written(text)), told)
})

test('a file of a rune or a macaroon with anything else is refused, and not quoted', async () => {
  for (const text of [
    ...['', 'a'.repeat(39), `!${RUNE}`, `${RUNE}!`, `${RUNE}=`, `${RUNE} ${RUNE}`],
    ...['a'.repeat(MAX_BYTES + 1), `{"rune":"!${RUNE}"}`, `{"runes":"${RUNE}"}`],
  ]) {
    const message = 'MAYFLY_LIGHTNING_URL: the rune file holds no rune'
    await assert.rejects(runeIn(written(text)), { message })
  }
  for (const text of [
    ...['', 'not what was meant', '-----BEGIN CERTIFICATE-----\n'],
    // Hex with a digit too few, and with what is no digit at its end or within it.
    ...['02010', '0201zz', '02zz01', Buffer.alloc(MAX_BYTES + 1, 2)],
  ]) {
    const message = 'MAYFLY_LIGHTNING_URL: the macaroon file holds no macaroon, binary or hex'
    await assert.rejects(macaroonIn(written(text)), { message })
  }
})

test('LND: the URL has the port that LND has', async () => {
  const url = `lnd+https://[::1]/?macaroon=${written(macaroon)}`
  assert.deepEqual(await readLndUrl(url), {
    baseUrl: 'https://[::1]:8080',
    macaroon: macaroon.toString('hex'),
    certificate: undefined,
    private: false,
  })
})

test('Core Lightning: the URL says whether invoices get hints to private channels, and may end its host with a slash', async () => {
  for (const [rest, expected] of [
    ['', false],
    ['&private=0', false],
    ['&private=1', true],
  ] as const) {
    const access = await readClnUrl(inFolder(`cln+https://node:1/?rune=rune${rest}`))
    assert.deepEqual([access.baseUrl, access.private], ['https://node:1', expected])
  }
})

test('NWC: the URL is the connection string as the wallet gave it', () => {
  const url = `nostr+walletconnect://${KEY}?relay=wss%3A%2F%2Fa.example&relay=ws://b.example&secret=${SECRET}&lud16=me@a.example`
  assert.deepEqual(readNwcUrl(url), { url, relays: ['wss://a.example', 'ws://b.example'] })
})

test('NWC: the URL may do without its slashes, has digits in either case, and names up to eight relays', () => {
  const relays = Array.from({ length: 8 }, (_, i) => `wss://${i}.example`)
  const query = `relay=${relays.join('&relay=')}&secret=${SECRET.toUpperCase()}`
  const url = `nostr+walletconnect:${KEY.toUpperCase()}?${query}`
  assert.deepEqual(readNwcUrl(url), { url, relays })
  assert.throws(() => readNwcUrl(`${url}&relay=wss://8.example`), {
    message:
      'MAYFLY_LIGHTNING_URL names no relay, or more than eight, or one that is not ws:// or wss://; ' +
      'expected nostr+walletconnect://<public key>?relay=wss://<host>&secret=<hex>',
  })
})

const refused: [read: (url: string) => unknown, url: string, message: RegExp][] = [
  ...['', 'lnd+https:', 'lnd+http://node?macaroon=x', 'https://node?macaroon=x'].map(
    (url): [typeof readLndUrl, string, RegExp] => [
      readLndUrl,
      url,
      /is not of this form; expected lnd\+https:/,
    ],
  ),
  [readLndUrl, 'lnd+https://node', /names no macaroon/],
  [readLndUrl, 'lnd+https://node?macaroon=', /names no macaroon/],
  [readPhoenixdUrl, 'phoenixd+http:', /is not of this form; expected phoenixd\+http:/],
  [readPhoenixdUrl, 'http://:hunter2@node', /is not of this form/],
  [readPhoenixdUrl, 'phoenixd+http://node', /has no password/],
  [readPhoenixdUrl, 'phoenixd+http://me:hunter2@node', /has a user/],
  [readPhoenixdUrl, 'phoenixd+http://:hunter2@node/api', /has a path/],
  [readPhoenixdUrl, 'phoenixd+http://:hunter2%@node', /has no password/],
  [readPhoenixdUrl, 'phoenixd+http://:hunter2@node?cert=cert', /needs phoenixd\+https/],
  [readPhoenixdUrl, 'phoenixd+https://:hunter2@node?cert=words', /holds no PEM/],
  [readClnUrl, 'cln+http://node?rune=rune', /is not of this form; expected cln\+https:/],
  [readClnUrl, 'cln+https://node', /names no rune/],
  [readClnUrl, 'cln+https://:hunter2@node?rune=rune', /has a user or a password/],
  [readClnUrl, 'cln+https://node?rune=gone', /the rune file .*gone cannot be read \(ENOENT\)/],
  [readClnUrl, 'cln+https://node?rune=words', /the rune file holds no rune/],
  [readClnUrl, 'cln+https://node?rune=bytes', /the rune file holds no rune/],
  [readClnUrl, 'cln+https://node?rune=rune&cert=bytes', /the cert file holds no PEM/],
  [readClnUrl, 'cln+https://node?rune=rune&cert=gone', /the cert file .*gone cannot be read/],
  [readClnUrl, 'cln+https://node?rune=rune&tls=0', /has an unknown parameter; expected cln/],
  [readClnUrl, 'cln+https://node?rune=rune&rune=rune', /has a parameter twice; expected cln/],
  [readClnUrl, 'cln+https://node?rune=rune&private=2', /needs private to be 0 or 1/],
  [readClnUrl, 'cln+https://node?rune=rune&cert=words', /holds no PEM/],
  [readClnUrl, 'cln+https://node?rune=rune&private=yes', /needs private to be 0 or 1/],
  [readNwcUrl, 'hunter2', /is not of this form; expected nostr\+walletconnect:/],
  [readNwcUrl, `https://${KEY}?relay=wss://a&secret=${SECRET}`, /is not of this form; expected/],
  ...['hunter2', `${KEY}a`, `a${KEY}`, `${KEY}:80`].map(
    (key): [typeof readNwcUrl, string, RegExp] => [
      readNwcUrl,
      `nostr+walletconnect://${key}?relay=wss://a&secret=${SECRET}`,
      /has no public key of the wallet/,
    ],
  ),
  ...['', '&secret=hunter2', `&secret=${SECRET}c`, `&secret=d${SECRET}`].map(
    (secret): [typeof readNwcUrl, string, RegExp] => [
      readNwcUrl,
      `nostr+walletconnect://${KEY}?relay=wss://a${secret}`,
      /has no secret of 32 bytes in hex/,
    ],
  ),
  ...['0'.repeat(64), CURVE_ORDER].map((secret): [typeof readNwcUrl, string, RegExp] => [
    readNwcUrl,
    `nostr+walletconnect://${KEY}?relay=wss://a&secret=${secret}`,
    /has a secret that is no private key/,
  ]),
  ...['', '&relay=wss://a&relay=https://b', '&relay=hunter2', '&relay=wss://me:hunter2@a'].map(
    (relays): [typeof readNwcUrl, string, RegExp] => [
      readNwcUrl,
      `nostr+walletconnect://${KEY}?secret=${SECRET}${relays}`,
      /names no relay, or more than eight, or one that is not ws:\/\//,
    ],
  ),
]
for (const [read, url, message] of refused) {
  test(`the URL is refused: ${url.replaceAll(/[0-9a-f]{64}/g, '…')}`, async () => {
    await assert.rejects(
      async () => read(inFolder(url)),
      (error: Error) => {
        assert.match(error.message, /^MAYFLY_LIGHTNING_URL/)
        assert.match(error.message, message)
        assert.doesNotMatch(error.message, /hunter2|cdcdcd/)
        return true
      },
    )
  })
}

test('an error names the setting that the URL came from', async () => {
  await assert.rejects(readClnUrl('cln+https://node', 'MAYFLY_WALLET_URL'), {
    message: /^MAYFLY_WALLET_URL names no rune/,
  })
})
