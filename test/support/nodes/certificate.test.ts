import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../folder.ts'
import { readCertificate } from './certificate.ts'

test('a certificate is read once all of it is there, and not before', async (t) => {
  const file = join(await temporaryFolder(t), 'tls.cert')
  const pem = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'
  assert.throws(() => readCertificate(file), /ENOENT/)
  for (const written of ['', pem.slice(0, 40), pem.slice(0, -10)]) {
    writeFileSync(file, written)
    assert.throws(() => readCertificate(file), /still being written/)
  }
  writeFileSync(file, pem)
  assert.equal(readCertificate(file), pem)
})
