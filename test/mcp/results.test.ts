/** Every answer of every tool fits its output schema, whether it succeeds or not. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { TOOL_NAMES } from '../../src/mcp-tools/tools.ts'
import {
  type CallOptions,
  challengeIn,
  connect,
  credentialOf,
  purchaseIn,
  REVISIONS,
} from '../support/mcp.ts'
import { live } from '../support/pulse.ts'
import { resultChecks } from '../support/schemas.ts'
import { startServer } from '../support/server.ts'
import { aWhisper } from '../support/whisper.ts'

const HOUR = 60 * 60 * 1000
type Tokens = Record<string, string>

for (const revision of REVISIONS) {
  for (const way of ['remote', 'visible'] as const) {
    test(`every answer of every tool fits its schema, for a client of ${revision}, ${way}`, async (t) => {
      const server = await startServer(t)
      const { url, pay, clock } = server
      const query = way === 'visible' ? '?tokens=visible' : ''
      const agent = await connect(t, url, { revision, query })
      const { check, answered, refused } = resultChecks(await agent.tools())

      async function call(name: string, given: object = {}, options: CallOptions = {}) {
        const { token } = options
        const asArgument = way === 'visible' && token !== undefined
        const result = await agent.call(
          name,
          asArgument ? { ...given, token } : given,
          asArgument ? {} : options,
        )
        check(name, { ...result, text: result.content.map(({ text }) => text).join('') })
        return result
      }

      async function buy(name: string, given: object): Promise<Tokens> {
        const asked = await call(name, given)
        const { purchaseId, quote } = purchaseIn(asked)
        await call('check_order', { orderId: quote.orderId, purchaseId })
        const wrong = credentialOf(challengeIn(asked), '00'.repeat(32))
        await call(name, { ...given, purchaseId }, { meta: wrong })
        const meta = credentialOf(challengeIn(asked), await pay(quote.bolt11))
        const { structuredContent, _meta } = await call(name, { ...given, purchaseId }, { meta })
        await call(name, { ...given, purchaseId, planId: 'long' })
        await call('check_order', { orderId: quote.orderId, purchaseId })
        await call('check_order', { orderId: quote.orderId })
        return (way === 'visible'
          ? structuredContent?.bought
          : _meta?.['org.mayfly/capability']) as unknown as Tokens
      }

      await call('catalog')
      for (const name of TOOL_NAMES) await call(name, { unknown: true })
      const inbox = await buy('buy_inbox', { planId: 'spark' })
      const own = { publicId: inbox.publicId }
      const token = inbox.ownerToken as string
      await call('wait_for_webhook', { ...own, timeoutSeconds: 1 }, { token })
      for (const body of ['text', new Uint8Array([0xff]), '']) {
        const headers = { 'x-latin': '\u00ff' }
        await fetch(`${url}/c/${inbox.publicId}/a?b`, { method: 'POST', body, headers })
      }
      await call('read_inbox', own, { token })
      await call('read_inbox', { ...own, limit: 1 }, { token })
      await call('read_inbox', { ...own, after: 1, maxTextBytes: 64 }, { token })
      await call('read_inbox', { ...own, after: 1, cursor: 1 }, { token })
      await call('wait_for_webhook', { ...own, after: 0 }, { token })
      const extending = { ...own, planId: 'spark' }
      const asked = purchaseIn(await call('extend', extending, { token }))
      const named = { purchaseId: asked.purchaseId }
      await call('check_order', { orderId: asked.quote.orderId, ...named })
      await pay(asked.quote.bolt11)
      await call('extend', { ...extending, ...named }, { token })
      await call('check_order', { orderId: asked.quote.orderId, ...named })
      await call('check_order', { orderId: asked.quote.orderId })

      const ciphertextBase64 = randomBytes(64).toString('base64')
      const sent = await buy('send_whisper', {
        ...{ planId: 'spark', ciphertextBase64, readLimit: 2, receipt: true },
      })
      await call('read_whisper', { publicId: sent.publicId }, { token: sent.readToken as string })
      await call('destroy', { publicId: sent.publicId }, { token: sent.receiptToken as string })
      const long = await aWhisper(server, { plan: 'long', body: randomBytes(2 ** 20 + 1) })
      await call('read_whisper', { publicId: long.publicId }, { token: long.readToken })

      const monitor = await buy('buy_monitor', { planId: 'long' })
      const job = { publicId: monitor.publicId }
      const states: unknown[] = []
      const look = async (): Promise<void> => {
        const result = await call('monitor_status', job, { token: monitor.ownerToken as string })
        states.push(result.structuredContent?.state)
      }
      await look()
      await call('ping', job, { token: monitor.pingToken as string })
      await look()
      await live(server, 24 * HOUR)
      await look()
      clock.advance(Date.parse(monitor.expiresAt as string) - clock.now() + 1)
      await look()
      assert.deepEqual(states, ['waiting', 'operational', 'late', 'expired'])
      await call('wait_for_webhook', { ...own, after: 3, timeoutSeconds: 2 }, { token })

      const gone = await buy('buy_inbox', { planId: 'spark' })
      const last = { publicId: gone.publicId }
      for (let i = 0; i < 2; i++) await call('destroy', last, { token: gone.ownerToken as string })
      for (const name of TOOL_NAMES) await call(name, { publicId: 'catch_x' }).catch(() => null)
      assert.deepEqual([...answered].sort(), [...TOOL_NAMES].sort())
      assert.deepEqual([...refused].sort(), [...TOOL_NAMES].sort())
    })
  }
}
