/** Which URLs and files LND is reached by. What all nodes have in common is in `node/urls.test.ts`. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readLndUrl } from '../../../src/lightning/lnd/url.ts'
import { temporaryFolder } from '../../support/folder.ts'

const MAX_BYTES = 16 * 1024
const BYTES = Buffer.from('0201036c6e64ff00', 'hex')

test('the URL of LND reads a macaroon of up to 16 KiB, from LND’s own file or from hex', async (t) => {
  const file = join(await temporaryFolder(t), 'macaroon')
  for (const [text, macaroon] of [
    [BYTES, '0201036c6e64ff00'],
    [`${BYTES.toString('hex').toUpperCase()}\n`, '0201036c6e64ff00'],
    [Buffer.alloc(MAX_BYTES, 2), '02'.repeat(MAX_BYTES)],
  ] as const) {
    writeFileSync(file, text)
    assert.deepEqual(await readLndUrl(`lnd+https://[::1]/?macaroon=${file}`), {
      ...{ baseUrl: 'https://[::1]:8080', macaroon, certificate: undefined, private: false },
    })
  }
})

test('a file with anything else is refused, and not quoted', async (t) => {
  const file = join(await temporaryFolder(t), 'macaroon')
  for (const text of [
    ...['', 'not what was meant', '-----BEGIN CERTIFICATE-----\n'],
    // Hex with a digit too few, and with what is no digit at its end or within it.
    ...['02010', '0201zz', '02zz01'],
    Buffer.alloc(MAX_BYTES + 1, 2),
  ]) {
    writeFileSync(file, text)
    await assert.rejects(readLndUrl(`lnd+https://node?macaroon=${file}`), {
      message: 'MAYFLY_LIGHTNING_URL: the macaroon file holds no macaroon, binary or hex',
    })
  }
})

test('the URL of LND is refused in another form, or without a macaroon', async () => {
  for (const url of ['', 'lnd+https:', 'lnd+http://node?macaroon=x', 'https://node?macaroon=x']) {
    await assert.rejects(readLndUrl(url), /is not of this form; expected lnd\+https:/)
  }
  for (const url of ['lnd+https://node', 'lnd+https://node?macaroon=']) {
    await assert.rejects(readLndUrl(url), /^Error: MAYFLY_LIGHTNING_URL names no macaroon/)
  }
})
