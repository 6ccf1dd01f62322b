import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { TOOL_NAMES } from '../../src/mcp-tools/tools.ts'
import { commandLine, WITH_WALLET } from '../support/command-line.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const page = readFileSync(new URL('../../docs/mcp-local.md', import.meta.url), 'utf8')
const blocks = [...page.matchAll(/```json\n([\s\S]*?)```/g)].map(([, text = '']) => text)
const [mcpServers = '', servers = '', session = '', bought = '', read = ''] = blocks

test('the configurations of docs/mcp-local.md are JSON that starts mayfly mcp', () => {
  assert.equal(blocks.length, 5)
  const both = [JSON.parse(mcpServers).mcpServers, JSON.parse(servers).servers]
  for (const { mayfly } of both)
    assert.deepEqual([mayfly.command, ...mayfly.args], ['mayfly', 'mcp'])
})

test('the table of docs/mcp-local.md has each tool', () => {
  for (const name of TOOL_NAMES) assert.match(page, new RegExp(`^\\|.*\`${name}\`.*\\|$`, 'm'))
})

test('the session of docs/mcp-local.md is answered as it says', async (t) => {
  const { url } = await startServer(t)
  const cli = await commandLine(t, url)
  const running = cli.start(['mcp'], { ...WITH_WALLET, input: null })
  const answered = (id: number) =>
    running
      .out()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line))
      .find((message) => message.id === id)
  for (const line of session.trim().split('\n')) {
    const { id } = JSON.parse(line)
    running.child.stdin?.write(`${line}\n`)
    if (id !== undefined) await until('the answer has come', async () => answered(id) !== undefined)
  }
  const contents = [2, 3].map((id) => answered(id).result.structuredContent)
  const { publicId, expiresAt, url: address } = contents[0].bought
  const said = (text: string) =>
    JSON.parse(
      text
        .replace('{publicId}', publicId)
        .replace('{expiresAt}', expiresAt)
        .replace('{url}', address),
    )
  assert.deepEqual(contents, [said(bought), said(read)])
  running.child.stdin?.end()
  assert.equal((await running.ended).code, 0)
})
