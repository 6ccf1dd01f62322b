/** `node use.mjs HOST URL BIN HOME`: uses every tool of `mayfly mcp` from a host, by the host's own command line. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const [host, url, bin, home] = process.argv.slice(2)
const config = join(home, 'mcp.json')
const mayfly = fileURLToPath(new URL('../../bin/mayfly.mjs', import.meta.url))

mkdirSync(home, { recursive: true })
const env = { MAYFLY_URL: url, MAYFLY_WALLET_URL: 'simulator:', XDG_DATA_HOME: home }
const server = { command: process.execPath, args: [mayfly, 'mcp'], env }
writeFileSync(config, JSON.stringify({ mcpServers: { mayfly: server } }))

/** The structured content of a call, or the JSON of its text, as the host prints it. */
async function call(tool, args = {}) {
  const pairs = Object.entries(args).map(([name, value]) => `${name}=${value}`)
  if (host === 'mcporter') {
    const { stdout } = await run(join(bin, 'mcporter'), [
      ...['--config', config, 'call', `mayfly.${tool}`, '--output', 'json'],
      ...pairs,
    ])
    return shownBy(JSON.parse(stdout))
  }
  const { stdout } = await run(join(bin, 'mcp-inspector'), [
    ...['--cli', '--config', config, '--server', 'mayfly'],
    ...['--protocol-era', host === 'inspector-modern' ? 'modern' : 'legacy'],
    ...['--method', 'tools/call', '--tool-name', tool],
    ...pairs.flatMap((pair) => ['--tool-arg', pair]),
  ])
  return shownBy(JSON.parse(stdout))
}

/** A host can print a result whole, or what it holds. */
function shownBy(printed) {
  const { structuredContent, content } = printed
  if (structuredContent) return structuredContent
  if (!Array.isArray(content)) return printed
  const [{ text }] = content
  return text.startsWith('{') ? JSON.parse(text) : { text }
}

const { plans } = await call('catalog')
assert.equal(plans.length, 9)
const inbox = await call('buy_inbox', { planId: 'spark', name: 'hooks' })
assert.equal(inbox.state, 'settled')
assert.deepEqual(await call('check_order', { name: 'hooks' }), inbox)
await fetch(`${inbox.bought.url}/first`, { method: 'POST', body: 'hello' })
const { reason, webhooks } = await call('wait_for_webhook', { name: 'hooks' })
assert.equal(reason, 'received')
assert.equal(webhooks[0].body.untrustedText, 'hello')
const { webhook } = await call('get_webhook', { name: 'hooks', sequence: 1 })
assert.equal(webhook.body.untrustedText, 'hello')
await call('buy_monitor', { planId: 'spark', name: 'job', cron: '0 3 * * *' })
assert.equal((await call('ping', { name: 'job' })).text, 'Recorded.')
const { state, expiresAt } = await call('monitor_status', { name: 'job' })
assert.equal(state, 'operational')
const { extended } = await call('extend', { name: 'job', expiresAt })
assert.ok(Date.parse(extended.expiresAt) > Date.parse(expiresAt))
assert.deepEqual((await call('extend', { name: 'job', expiresAt })).extended, extended)
await call('send_whisper', { planId: 'spark', name: 'door', text: 'mellon', receipt: true })
const { content } = await call('read_whisper', { name: 'door' })
assert.equal(content.untrustedText, 'mellon')
for (const name of ['hooks', 'job', 'door']) {
  assert.match((await call('destroy', { name })).text, /is destroyed/)
}
