import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { readLndUrl } from '../../../src/lightning/lnd/url.ts'

const PEM = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
const BYTES = Buffer.from('0201036c6e64ff00', 'hex')

describe('the LND form of MAYFLY_LIGHTNING_URL', () => {
  let folder: string
  const file = (name: string) => join(folder, name)
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'mayfly-lnd-url-'))
    writeFileSync(file('binary'), BYTES)
    writeFileSync(file('hex'), `${BYTES.toString('hex').toUpperCase()}\n`)
    writeFileSync(file('cert'), PEM)
    writeFileSync(file('empty'), '')
    writeFileSync(file('words'), 'not what was meant')
    // The hex of a macaroon with a digit too few, and with what is no digit at its end or within it.
    for (const [i, text] of ['02010', '0201zz', '02zz01'].entries()) {
      writeFileSync(file(`hex${i}`), text)
    }
    for (const [name, bytes] of [
      ['large', 16 * 1024],
      ['larger', 16 * 1024 + 1],
    ] as const) {
      writeFileSync(file(name), Buffer.alloc(bytes, 2))
    }
  })
  after(() => rmSync(folder, { recursive: true }))

  test('the URL of LND reads the macaroon from LND’s own file or from hex, and the certificate', async () => {
    for (const name of ['binary', 'hex']) {
      assert.deepEqual(
        await readLndUrl(`lnd+https://node:8080?macaroon=${file(name)}&cert=${file('cert')}`),
        {
          baseUrl: 'https://node:8080',
          macaroon: '0201036c6e64ff00',
          certificate: PEM,
          private: false,
        },
      )
    }
  })

  test('the URL of LND does without a certificate, with an IPv6 address, a slash, no port, and hints', async () => {
    const read = await readLndUrl(`lnd+https://[::1]/?macaroon=${file('hex')}&private=1`)
    assert.deepEqual(read, {
      baseUrl: 'https://[::1]:8080',
      macaroon: '0201036c6e64ff00',
      certificate: undefined,
      private: true,
    })
  })

  test('the URL of LND reads a macaroon of 16 KiB', async () => {
    const { macaroon } = await readLndUrl(`lnd+https://node?macaroon=${file('large')}`)
    assert.equal(macaroon, '02'.repeat(16 * 1024))
  })

  const refused: [url: string, message: RegExp][] = [
    ['', /is not of this form; expected lnd\+https:/],
    ['lnd+https:', /is not of this form/],
    ['lnd+http://node:8080?macaroon=hex', /is not of this form/],
    ['https://node:8080?macaroon=hex', /is not of this form/],
    ['lnd+https://me:secret@node?macaroon=hex', /has a user or a password/],
    ['lnd+https://node/v1?macaroon=hex', /has a path/],
    ['lnd+https://node?macaroon=hex&tls=1', /has an unknown parameter/],
    ['lnd+https://node?macaroon=hex&macaroon=hex', /has a parameter twice/],
    ['lnd+https://node', /names no macaroon/],
    ['lnd+https://node?macaroon=', /names no macaroon/],
    ['lnd+https://node?macaroon=gone', /: the macaroon file .*gone cannot be read \(ENOENT\)/],
    ['lnd+https://node?macaroon=hex&cert=gone', /: the cert file .*gone cannot be read \(ENOENT\)/],
    ['lnd+https://node?macaroon=empty', /: the macaroon file holds no macaroon/],
    ['lnd+https://node?macaroon=words', /: the macaroon file holds no macaroon/],
    ...['hex0', 'hex1', 'hex2', 'larger'].map((name): [string, RegExp] => [
      `lnd+https://node?macaroon=${name}`,
      /: the macaroon file holds no macaroon, binary or hex/,
    ]),
    ['lnd+https://node?macaroon=cert', /: the macaroon file holds no macaroon/],
    ['lnd+https://node?macaroon=hex&cert=words', /: the cert file holds no PEM certificate/],
    ['lnd+https://node?macaroon=hex&private=yes', /needs private to be 0 or 1/],
  ]
  for (const [url, message] of refused) {
    test(`the URL of LND is refused: ${url || '(empty)'}`, async () => {
      const inFolder = url.replaceAll(/=(hex\d?|gone|empty|words|larger|cert)\b/g, `=${folder}/$1`)
      await assert.rejects(readLndUrl(inFolder), (error: Error) => {
        assert.match(error.message, /^MAYFLY_LIGHTNING_URL/)
        assert.match(error.message, message)
        assert.ok(!error.message.includes('secret'))
        return true
      })
    })
  }
})
