import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { suite, test } from 'node:test'
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'

const json = async (file: string) =>
  JSON.parse(await readFile(new URL(`../../${file}`, import.meta.url), 'utf8'))

suite('server.json, for the registry of MCP', () => {
  test('server.json has the form of the registry, and no member that it would not read', async () => {
    const ajv = new Ajv({ strict: true, allErrors: true })
    addFormats.default(ajv)
    const check = ajv.compile(await json('test/vectors/discovery/server-json.json'))
    const server = await json('server.json')
    assert.ok(check(server), ajv.errorsText(check.errors))
  })

  test('server.json names this version, and no package: nobody owns that name until the owner publishes it', async () => {
    const server = await json('server.json')
    const { version, mcpName } = await json('package.json')
    assert.deepEqual([server.version, server.name], [version, mcpName])
    assert.equal(server.packages, undefined)
  })

  test('the addresses of server.json have no variable that it does not explain, and end at /mcp', async () => {
    const { remotes } = await json('server.json')
    for (const { url, variables } of remotes) {
      const named = [...url.matchAll(/\{([^}]*)\}/g)].map(([, variable]) => variable)
      assert.deepEqual(named, Object.keys(variables))
      assert.equal(new URL(url.replaceAll(/[{}]/g, '')).pathname, '/mcp')
    }
  })
})
