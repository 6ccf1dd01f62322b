/** Every tool, and what an agent is asked for, by both ways in, from three hosts each. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { suite, test } from 'node:test'
import { promisify } from 'node:util'
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import { containsToken } from '../../src/lib/ids.ts'
import { TOOL_NAMES } from '../../src/tools/tools.ts'
import { commandLine } from '../support/command-line.ts'
import { query } from '../support/store.ts'
import { until } from '../support/until.ts'
import { type Answered, KINDS, openHost, readIn } from './hosts.ts'

/** What an agent is asked for takes no more calls, besides those that pay. */
const MOST_CALLS = 3

for (const kind of KINDS) {
  suite(`the tools, ${kind.way}, from ${kind.client}`, () => {
    test('every tool works, fits its schema and says each thing once, and a task takes three calls at most', async (t) => {
      const host = await openHost(t, kind)
      const { server } = host
      const tools = await host.tools()
      assert.deepEqual(
        tools.map(({ name }) => name),
        TOOL_NAMES,
      )
      assert.ok(Buffer.byteLength(JSON.stringify(tools)) <= 20 * 1024)
      const ajv = new Ajv({ strict: true, allErrors: true, allowUnionTypes: true })
      addFormats.default(ajv)
      const called = new Set<string>()

      async function call(name: string, args: Record<string, unknown> = {}): Promise<Answered> {
        const answered = await host.call(name, args)
        assert.equal(answered.isError, false, `${name}: ${answered.text}`)
        called.add(name)
        const { outputSchema } = tools.find((one) => one.name === name) ?? {}
        if (outputSchema) assert.ok(ajv.validate(outputSchema, answered.value), ajv.errorsText())
        assert.notEqual(answered.text, '')
        // A host may pass on only one of both.
        for (const member of leavesOf(answered.value)) {
          assert.ok(answered.text.includes(member), `${name} does not say ${member}`)
        }
        return answered
      }

      const { plans } = (await call('catalog')).value as { plans: object[] }
      assert.equal(plans.length, 9)

      // "Give me a webhook address, and tell me of the next request", which came before the agent waited.
      let before = host.calls()
      const inbox = await host.buy('buy_inbox', 'hooks')
      const [publicId = ''] = /catch_[0-9A-Za-z]{22}/.exec(host.seen()) ?? []
      for (const body of ['{"ok":true}', new Uint8Array([0xff, 0xfe]), 'x'.repeat(5_000)]) {
        const headers = { 'content-type': 'application/json' }
        await fetch(`${server.url}/c/${publicId}/paid?id=1`, { method: 'POST', body, headers })
      }
      const waited = readIn(await call('wait_for_webhook', inbox()))
      assert.equal(waited.webhooks.length, 3)
      assert.deepEqual(waited.webhooks[0]?.body, {
        untrustedText: '{"ok":true}',
        bytes: 11,
        isCut: false,
      })
      const start = { untrustedText: 'x'.repeat(4096), bytes: 5_000, isCut: true }
      assert.deepEqual(waited.webhooks[2]?.body, start)
      assert.ok(host.calls() - before <= MOST_CALLS)
      const { text: list } = await call('read_inbox', inbox())
      assert.match(list, /^3 of 3 requests/)
      assert.match(list, /#1 \S+ POST "\/paid\?id=1" "application\/json" 11 B "\{\\"ok\\":true\}"/)
      const binary = readIn(await call('get_webhook', { ...inbox(), sequence: 2 })).webhook
      assert.deepEqual(binary.body, { untrustedBase64: '//4=', nextOffset: null })
      let long = ''
      for (let offset: unknown = 0; offset !== null; ) {
        const part = readIn(await call('get_webhook', { ...inbox(), sequence: 3, offset }))
        const body = part.webhook.body as { untrustedText: string; nextOffset: number | null }
        long += body.untrustedText
        offset = body.nextOffset
      }
      assert.equal(long, 'x'.repeat(5_000))

      const sent = async (): Promise<[number, string]> => {
        const answer = await fetch(`${server.url}/c/${publicId}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: '{"challenge":"abc"}',
        })
        return [answer.status, await answer.text()]
      }
      await call('set_webhook_response', { ...inbox(), echoJson: 'challenge' })
      assert.deepEqual(await sent(), [200, 'abc'])
      await call('set_webhook_response', { ...inbox(), status: 202, body: 'later' })
      assert.deepEqual(await sent(), [202, 'later'])
      await call('set_webhook_response', inbox())
      assert.deepEqual(await sent(), [204, ''])

      // "Watch my nightly job, and tell me."
      before = host.calls()
      const monitor = await host.buy('buy_monitor', 'job', {
        label: 'backup',
        cron: '0 3 * * *',
        timeZone: 'Europe/Berlin',
        graceSeconds: 1800,
      })
      const alerts =
        kind.way === 'local'
          ? [{ inbox: 'hooks' }]
          : [{ inbox: publicId, ingestToken: inbox('ingest').token }]
      const { value: told } = await call('configure_monitor', { ...monitor(), alerts })
      assert.deepEqual(told.alerts, [{ to: publicId, format: 'inbox', state: 'active' }])
      assert.ok(host.calls() - before <= MOST_CALLS)
      assert.match(host.seen(), /Nobody is alerted when it is late until alerts are set/)
      await until('the inbox was told of the test', async () =>
        /^#7 .*test.*backup/m.test((await host.call('read_inbox', inbox())).text),
      )
      // The line for the job is said, and works.
      assert.match(host.seen(), /mayfly pulse run/)
      if (kind.way === 'local') {
        const cli = await commandLine(t, server.url)
        const environment = { XDG_DATA_HOME: host.home }
        const ran = await cli.run(['pulse', 'run', 'job', '--', 'true'], { environment })
        assert.equal(ran.code, 0, ran.err)
      }
      if (kind.way === 'results') {
        const said = host.seen().replaceAll('\\n', '\n').replaceAll('\\"', '"')
        const [line = ''] = /curl -fsS [^\n]+?\/p\/pulse_[0-9A-Za-z]{22}/.exec(said) ?? []
        await promisify(execFile)('sh', ['-c', line])
      }
      if (kind.way === 'meta') await call('ping', monitor('ping'))
      const { value: status } = await call('monitor_status', monitor())
      const cron = 'a ping at 0 3 * * * (Europe/Berlin), at most'
      assert.equal(status.expects, `${cron} 1800 s late`)
      assert.equal(status.state, 'operational')
      // The grace alone is that of what the monitor goes by.
      const later = await call('configure_monitor', { ...monitor(), graceSeconds: 1200 })
      assert.equal(later.value.expects, `${cron} 1200 s late`)
      assert.equal((await call('monitor_status', monitor())).value.expects, `${cron} 1200 s late`)
      await call('ping', monitor('ping'))
      const { value: set } = await call('configure_monitor', {
        ...monitor(),
        intervalSeconds: 3600,
        graceSeconds: 600,
        publicStatus: true,
      })
      assert.match(String(set.statusUrl), /\/status\/pulse_status_/)
      const again = (await call('monitor_status', monitor())).value
      assert.match(String(again.expects), /every 3600 s, at most 600 s late/)

      const { value: rotated } = await call('rotate_token', { ...monitor(), kind: 'ping' })
      const refused = await host.call('ping', monitor('ping'))
      if (kind.way === 'local') assert.equal(refused.isError, false, refused.text)
      else {
        assert.match(refused.text, /not found/)
        const token = rotated.token ?? rotated['org.mayfly/token']
        await call('ping', { ...monitor('ping'), token })
      }

      const ciphertextBase64 = randomBytes(64).toString('base64')
      const secret = kind.way === 'local' ? { text: 'mellon' } : { ciphertextBase64 }
      const whisper = await host.buy('send_whisper', 'door', { ...secret, receipt: true })
      const read = readIn(await call('read_whisper', whisper('read')))
      if (kind.way === 'local') {
        assert.equal(read.content.untrustedText, 'mellon')
        // "Share this once": the call that bought it says the code.
        const [code = ''] = /mayfly-whisper:1:[^\s"\\]+/.exec(host.seen()) ?? []
        assert.equal(Buffer.from((await server.mayfly.readWhisper(code)).data).toString(), 'mellon')
      } else assert.equal(read.ciphertextBase64, ciphertextBase64)

      if (kind.way === 'local') {
        const { expiresAt } = (await call('check_order', { name: 'job' })).value.bought as {
          expiresAt: string
        }
        const extended = await call('extend', { name: 'job', expiresAt })
        assert.equal(extended.value.state, 'settled')
      } else {
        const asked = await call('extend', { ...monitor(), planId: 'spark' })
        const { quote, purchaseId } = asked.value as { quote: never; purchaseId: string }
        const { bolt11, orderId } = quote as { bolt11: string; orderId: string }
        await server.pay(bolt11)
        const extended = await call('check_order', { orderId, purchaseId })
        assert.ok((extended.value.extended as { expiresAt: string }).expiresAt)
      }
      for (const one of [inbox(), monitor(), whisper('receipt')]) await call('destroy', one)
      for (const name of ['buy_inbox', 'buy_monitor', 'send_whisper', 'check_order']) {
        called.add(name)
      }
      assert.deepEqual([...called].sort(), [...TOOL_NAMES].sort())
      // The code of a text that came from the model is no more secret than that text.
      const seen = host.transcript().replaceAll(/mayfly-whisper:1:[^\s"\\]+/g, '')
      if (kind.way !== 'results') assert.equal(containsToken(seen), false)
      const proofs = await query(server, 'select preimage from simulator_invoice')
      assert.equal(proofs.length, 4)
      for (const { preimage } of proofs) assert.equal(seen.includes(String(preimage)), false)
    })

    test('an error is in the words of the tools, and lists what is allowed and what there is', async (t) => {
      const host = await openHost(t, kind)
      const inbox = await host.buy('buy_inbox', 'hooks')
      const said = async (name: string, args: Record<string, unknown>): Promise<string> => {
        const { isError, text } = await host.call(name, args)
        assert.equal(isError, true, text)
        assert.doesNotMatch(text, /Authorization|Bearer|Idempotency|header|GET |POST |X-|--re/)
        return text
      }
      assert.match(
        await said('buy_inbox', { planId: 'huge' }),
        /planId must be spark, standard or long\. Nothing was done/,
      )
      assert.match(
        await said('buy_inbox', {}),
        /planId is needed, and must be spark, standard or long\./,
      )
      assert.match(await said('read_inbox', { other: 1 }), /^invalid arguments\. \w+ is needed/)
      assert.match(await said('catalog', { other: 1 }), /Expected: an empty object\./)
      if (kind.way === 'local') {
        const named = await said('buy_inbox', { planId: 'spark', name: 'Hooks' })
        assert.match(named, /name must be a new name of lower-case letters, digits/)
        const timed = await said('extend', { ...inbox(), expiresAt: 'now' })
        assert.match(timed, /expiresAt must be a time with its offset, such as 20/)
        for (const name of ['read_inbox', 'read_whisper', 'check_order', 'destroy']) {
          assert.match(
            await said(name, { name: 'My hooks' }),
            /^A name has at most 63 characters: lower-case letters, digits/,
          )
        }
        const none = await said('check_order', { name: 'hoks' })
        assert.match(none, /Nothing was bought as hoks.*Saved: hooks \(inbox\)\./)
      }
      assert.match(await said('monitor_status', inbox()), /monitor|pulse_…/)
      assert.match(await said('get_webhook', { ...inbox(), sequence: 9 }), /no request #9/)
      const moved = { ...inbox(), status: 302 }
      assert.match(await said('set_webhook_response', moved), /status must be .*200.*Nothing was/)
      const two = { ...inbox(), status: 200, echoJson: 'challenge' }
      assert.match(await said('set_webhook_response', two), /only one/)
      if (kind.way === 'local') {
        const missing = await said('read_inbox', { name: 'hoks' })
        assert.match(missing, /Nothing is saved as hoks\. Saved: hooks \(inbox\)\./)
      } else {
        const { token, ...without } = inbox()
        assert.ok(token)
        assert.match(await said('read_inbox', without), /needs (?:the argument|a) token/)
        const wrong = `catch_owner_${'0'.repeat(49)}`
        assert.match(await said('read_inbox', { ...without, token: wrong }), /unauthorized/)
        const ingest = await said('destroy', inbox('ingest'))
        assert.match(
          ingest,
          /unauthorized\. This tool takes a catch_owner_… token for it\. Nothing/,
        )
        const publicId = `whisper_${'0'.repeat(22)}`
        const unread = await said('read_whisper', { ...inbox(), publicId })
        assert.match(unread, /This tool takes a whisper_read_… token/)
        const other = await said('destroy', { ...inbox(), publicId: 'hooks' })
        assert.match(other, /publicId must be .* catch_…, pulse_…, or whisper_…\./)
      }
      const secret =
        kind.way === 'local'
          ? { name: 'door', text: 'mellon' }
          : { ciphertextBase64: randomBytes(64).toString('base64') }
      const often = await said('send_whisper', { ...secret, planId: 'spark', readLimit: 402 })
      assert.match(often, /^invalid read limit\. readLimit must be 1 to 3\. Nothing was done\.$/)
      assert.match((await host.call('destroy', inbox())).text, /^The inbox \S+ is destroyed\.$/)
      if (kind.way !== 'local') {
        assert.match(await said('read_inbox', inbox()), /what it is for has ended or is suspended/)
      }
      const monitor = await host.buy('buy_monitor', 'job')
      const never = { ...monitor(), cron: '0 3 31 2 *' }
      assert.match(await said('configure_monitor', never), /cron must be five fields.*Nothing was/)
      const both = { ...monitor(), cron: '0 3 * * *', intervalSeconds: 60 }
      assert.match(await said('configure_monitor', both), /either intervalSeconds or cron/)
      const local = { ...monitor(), alerts: [{ url: 'https://127.0.0.1/x' }] }
      assert.match(await said('configure_monitor', local), /alerts|url must be an https URL/)
    })
  })
}

/** All values within a structured content. What is beside it in `_meta` has a name with a slash. */
function leavesOf(value: unknown): string[] {
  if (value === null) return []
  if (typeof value !== 'object') return [String(value)]
  const members = Object.entries(value).filter(([name]) => !name.includes('/'))
  return members.flatMap(([, member]) => leavesOf(member))
}
