import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { TOOL_NAMES } from '../../src/tools/tools.ts'

const page = readFileSync(new URL('../../docs/mcp.md', import.meta.url), 'utf8')

test('docs/mcp.md has each tool', () => {
  for (const name of TOOL_NAMES) assert.match(page, new RegExp(`^\\|.*\`${name}\`.*\\|`, 'm'))
})

test('the configurations of docs/mcp.md are JSON, and the local one starts mayfly mcp', () => {
  const [local = ''] = [...page.matchAll(/```json\n([\s\S]*?)```/g)].map(([, text = '']) => text)
  const { command, args } = JSON.parse(local).mcpServers.mayfly
  assert.deepEqual([command, ...args], ['mayfly', 'mcp'])
  for (const [, remote = ''] of page.matchAll(/json`: `(\{.*?\})`/g)) {
    assert.match(JSON.stringify(JSON.parse(remote)), /https:\/\/mayfly\.example\/mcp/)
  }
})
