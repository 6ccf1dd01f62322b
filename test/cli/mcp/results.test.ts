/** Every answer of every tool of `mayfly mcp` fits its output schema, whether it succeeds or not. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TOOL_NAMES } from '../../../src/mcp-tools/tools.ts'
import { WITH_WALLET } from '../../support/command-line.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { connectHost, HOSTS, type ToolResult } from '../../support/mcp-host.ts'
import { live } from '../../support/pulse.ts'
import { resultChecks } from '../../support/schemas.ts'
import { startServer } from '../../support/server.ts'

const HOUR = 60 * 60 * 1000

for (const kind of HOSTS) {
  test(`${kind}: every answer of every tool fits its schema`, async (t) => {
    const server = await startServer(t)
    const { url } = server
    const environment = WITH_WALLET.environment
    const home = await temporaryFolder(t)
    const host = await connectHost(t, { kind, home, url, environment, args: ['--show-codes'] })
    const poor = await connectHost(t, { kind, home: await temporaryFolder(t), url })
    const { check, answered, refused } = resultChecks(await host.tools())

    async function call(name: string, given: object = {}, by = host): Promise<ToolResult> {
      const result = await by.call(name, given)
      const { isError, text, value } = result
      const structuredContent = isError && Object.keys(value).length === 0 ? undefined : value
      check(name, { isError, text, structuredContent })
      return result
    }

    await call('catalog')
    for (const name of TOOL_NAMES.filter((each) => each !== 'catalog')) {
      await call(name, { name: 'nothing', planId: 'long', text: 'x', code: 'x', readLimit: 403 })
      await call(name, { name: 'nothing' })
    }
    for (const by of [poor, host]) {
      for (const name of ['buy_inbox', 'buy_monitor']) {
        for (let i = 0; i < 2; i++) await call(name, { planId: 'spark', name }, by)
        await call('check_order', { name }, by)
      }
      const sent = { planId: 'spark', name: 'sent', text: 'four', receipt: true }
      for (let i = 0; i < 2; i++) await call('send_whisper', sent, by)
      await call('send_whisper', { ...sent, text: 'five' }, by)
      await call('check_order', { name: 'sent' }, by)
    }
    const { value } = await call('check_order', { name: 'buy_inbox' })
    const { url: inbox, expiresAt } = value.bought as { url: string; expiresAt: string }
    for (let i = 0; i < 2; i++) await call('extend', { name: 'buy_inbox', expiresAt })
    await call('check_order', { name: 'buy_inbox' })
    await call('wait_for_webhook', { name: 'buy_inbox', timeoutSeconds: 1 })
    for (const body of ['text', new Uint8Array([0xff]), '']) {
      await fetch(`${inbox}/a?b`, { method: 'POST', body, headers: { 'x-latin': '\u00ff' } })
    }
    for (const given of [
      {},
      { limit: 1 },
      { after: 1, maxTextBytes: 64 },
      { after: 1, cursor: 1 },
    ]) {
      await call('read_inbox', { name: 'buy_inbox', ...given })
    }
    await call('wait_for_webhook', { name: 'buy_inbox', after: 0 })
    for (let i = 0; i < 4; i++) await call('read_whisper', { name: 'sent' })
    const look = async () =>
      (await call('monitor_status', { name: 'buy_monitor' })).value.state as string
    const states = [await look()]
    await call('ping', { name: 'buy_monitor' })
    states.push(await look())
    await live(server, 23 * HOUR)
    states.push(await look())
    assert.deepEqual(states, ['waiting', 'operational', 'late'])
    for (const name of ['buy_inbox', 'buy_monitor', 'sent']) {
      for (let i = 0; i < 2; i++) await call('destroy', { name })
    }
    await server.stop()
    await call('catalog')
    assert.deepEqual([...answered].sort(), [...TOOL_NAMES].sort())
    assert.deepEqual([...refused].sort(), [...TOOL_NAMES].sort())
  })
}
