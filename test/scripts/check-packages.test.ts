import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkLock, isAllowed, type Locked } from '../../scripts/check-packages.ts'

const SOUND: Locked = {
  version: '1.0.0',
  integrity: `sha512-${'A'.repeat(86)}==`,
  license: 'MIT',
}
const FILE = 'clients/package-lock.json'

/** What is wrong with a lockfile that has this one package. */
const wrong = (locked: Partial<Locked>, file = FILE): string[] =>
  checkLock(file, { packages: { '': SOUND, 'node_modules/a': { ...SOUND, ...locked } } }).filter(
    (line) => line.includes(' node_modules/a ') || line.includes(': a '),
  )

test('a package of the registry with a hash and a known licence is in order', () => {
  assert.deepEqual(wrong({}), [])
})

test('a package from an address, or from a folder, is refused', () => {
  for (const elsewhere of [
    { resolved: 'git+ssh://git@example.com/a.git#abc' },
    { resolved: 'https://example.com/a.tgz' },
    { link: true as const },
  ]) {
    assert.deepEqual(wrong(elsewhere), [`${FILE}: node_modules/a does not come from the registry`])
  }
})

test('a package without a hash, or with a weak one, is refused', () => {
  for (const integrity of ['', `sha1-${'A'.repeat(27)}=`, 'sha512-AAAA']) {
    assert.deepEqual(wrong({ integrity }), [`${FILE}: node_modules/a has no SHA-512`])
  }
})

test('a package whose scripts an install would run is refused, unless it is named', () => {
  assert.deepEqual(wrong({ hasInstallScript: true }), [
    `${FILE}: a has install scripts, and is not named`,
  ])
  assert.deepEqual(checkLock('clients/mcp/package-lock.json', { packages: {} }), [
    'clients/mcp/package-lock.json: @modelcontextprotocol/inspector has no install scripts any more',
  ])
})

test('a package of another licence is refused; one that tools may have is not passed on', () => {
  assert.deepEqual(wrong({ license: 'AGPL-3.0-only' }), [
    `${FILE}: node_modules/a has the licence AGPL-3.0-only`,
  ])
  assert.deepEqual(wrong({ license: 'MPL-2.0' }), [])
  const ofService = (locked: Partial<Locked>) => wrong(locked, 'package-lock.json')
  assert.deepEqual(ofService({ license: 'MPL-2.0', dev: true }), [])
  assert.deepEqual(ofService({ license: 'MPL-2.0' }), [
    'package-lock.json: node_modules/a has the licence MPL-2.0',
  ])
})

test('one licence around OR is enough, and each around AND is needed', () => {
  const licences = ['MIT', 'Zlib']
  for (const expression of ['MIT', '(MIT OR GPL-3.0)', 'GPL-3.0 OR MIT', '(MIT AND Zlib)']) {
    assert.ok(isAllowed(expression, licences), expression)
  }
  for (const expression of ['GPL-3.0', 'MIT AND GPL-3.0', 'none', '', '(GPL-3.0 OR AGPL-3.0)']) {
    assert.ok(!isAllowed(expression, licences), expression)
  }
})
