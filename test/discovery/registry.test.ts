import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { OPTIONS } from '../../src/config.ts'

const json = async (file: string) =>
  JSON.parse(await readFile(new URL(`../../${file}`, import.meta.url), 'utf8'))

test('server.json, for the registry of MCP, names this package, its version and its settings', async () => {
  const server = await json('server.json')
  const { name, version } = await json('package.json')
  const [local] = server.packages
  assert.deepEqual([server.version, local.identifier, local.version], [version, name, version])
  assert.match(server.name, /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/)
  assert.ok(server.description.length <= 100)
  assert.match(server.remotes[0].url, /\/mcp$/)
  const known = new Map(Object.values(OPTIONS).map((option) => [option.name, option]))
  for (const { name, isSecret = false } of local.environmentVariables) {
    const option = known.get(name)
    assert.ok(option, name)
    assert.equal(isSecret, 'isSecret' in option, name)
  }
})
