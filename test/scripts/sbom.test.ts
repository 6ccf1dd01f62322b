import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { writeSbom } from '../../scripts/sbom.ts'
import { temporaryFolder } from '../support/folder.ts'

test('a bill of materials says of each package whether the tarball brings it, and nothing of when and where it was made', async (t) => {
  const tarball = join(await temporaryFolder(t), 'mayfly-0.1.0.tgz')
  await writeFile(tarball, 'bytes')
  const component = (ref: string) => ({
    'bom-ref': ref,
    name: ref.slice(0, ref.lastIndexOf('@')),
    version: ref.slice(ref.lastIndexOf('@') + 1),
  })
  const dependencies = [{ ref: '@someone/mayfly@0.1.0', dependsOn: ['@scope/one@1.0.0'] }]
  const tools = { tools: [{ name: 'cli', version: '11.0.0' }] }
  const sbom = {
    bomFormat: 'CycloneDX',
    serialNumber: 'urn:uuid:some',
    metadata: {
      timestamp: '2026-01-01T00:00:00Z',
      ...tools,
      component: {
        ...component('@someone/mayfly@0.1.0'),
        name: 'a-folder',
        properties: [{ name: 'cdx:npm:package:path', value: '' }],
      },
    },
    // Both a package in another version and one of the same name in a folder of its own are there.
    components: ['@scope/one@1.0.0', 'one@1.0.0', 'two@1.0.0', 'two@2.0.0'].map(component),
    dependencies,
  }
  const pinned = {
    'node_modules/@scope/one': { version: '1.0.0' },
    'node_modules/@scope/one/node_modules/two': { version: '2.0.0' },
  }
  const file = writeSbom(tarball, { sbom, pinned })
  assert.equal(file, tarball.replace('.tgz', '.cdx.json'))
  assert.deepEqual(JSON.parse(await readFile(file, 'utf8')), {
    bomFormat: 'CycloneDX',
    metadata: {
      ...tools,
      component: {
        ...component('@someone/mayfly@0.1.0'),
        hashes: [{ alg: 'SHA-512', content: createHash('sha512').update('bytes').digest('hex') }],
      },
    },
    components: [
      { ...component('@scope/one@1.0.0'), scope: 'required' },
      { ...component('one@1.0.0'), scope: 'optional' },
      { ...component('two@1.0.0'), scope: 'optional' },
      { ...component('two@2.0.0'), scope: 'required' },
    ],
    dependencies,
  })
})
