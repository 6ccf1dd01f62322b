/** What an agent is asked for takes at most three calls besides paying, by both ways in, from three hosts each. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { suite, test } from 'node:test'
import { promisify } from 'node:util'
import { parseJson } from '../../src/lib/json.ts'
import { commandLine } from '../support/command-line.ts'
import { KINDS, openHost, readIn } from '../support/tools.ts'
import { until } from '../support/until.ts'

const run = promisify(execFile)

for (const kind of KINDS) {
  suite(`an agent, ${kind.way}, from ${kind.client}`, () => {
    test('"give me a webhook address, and tell me field x of the next request"', async (t) => {
      const host = await openHost(t, kind)
      const inbox = await host.buy('buy_inbox', 'hooks')
      const publicId = String(inbox().publicId ?? /catch_[0-9A-Za-z]{22}/.exec(host.seen())?.[0])
      // It came before the agent waited.
      await fetch(`${host.server.url}/c/${publicId}`, { method: 'POST', body: '{"x": 7}' })
      const { webhooks } = readIn(await host.call('wait_for_webhook', inbox()))
      const [{ body } = {}] = webhooks
      const { untrustedText } = body as { untrustedText: string }
      assert.equal((parseJson(untrustedText) as { x: number }).x, 7)
      // Buying is one call, or two where the caller pays.
      assert.ok(host.calls() <= 3, String(host.calls()))
    })

    test('"watch my nightly job, and tell me"', async (t) => {
      const host = await openHost(t, kind)
      const inbox = await host.buy('buy_inbox', 'told')
      const publicId = String(inbox().publicId ?? /catch_[0-9A-Za-z]{22}/.exec(host.seen())?.[0])
      const before = host.calls()
      const monitor = await host.buy('buy_monitor', 'nightly', {
        label: 'backup',
        cron: '0 3 * * *',
        timeZone: 'Europe/Berlin',
      })
      const alerts =
        kind.way === 'local'
          ? [{ inbox: 'told' }]
          : [{ inbox: publicId, ingestToken: inbox('ingest').token }]
      const set = await host.call('configure_monitor', { ...monitor(), alerts })
      assert.deepEqual(set.value.alerts, [{ to: publicId, format: 'inbox', state: 'active' }])
      assert.ok(host.calls() - before <= 3, String(host.calls() - before))

      const said = host.seen()
      assert.match(said, /Nobody is alerted when it is late until alerts are set/)
      assert.match(said, /mayfly pulse run/)
      if (kind.way === 'results') {
        // The one line for the job, as it was said.
        const line = /curl -fsS [^\n]+?\/p\/pulse_[0-9A-Za-z]{22}/.exec(parsed(said))?.[0] ?? ''
        await run('sh', ['-c', line])
      }
      if (kind.way === 'local') {
        const cli = await commandLine(t, host.server.url)
        const environment = { XDG_DATA_HOME: host.home }
        const ran = await cli.run(['pulse', 'run', 'nightly', '--', 'true'], { environment })
        assert.equal(ran.code, 0, ran.err)
      }
      if (kind.way === 'meta') await host.call('ping', monitor('ping'))
      const { value } = await host.call('monitor_status', monitor())
      assert.equal(value.state, 'operational')
      assert.match(String(value.expects), /0 3 \* \* \*/)
      await until('the inbox was told of the test', async () => {
        const { text } = await host.call('read_inbox', inbox())
        return /pulse|test/.test(text)
      })
    })
  })
}

for (const kind of KINDS.filter(({ way }) => way === 'local')) {
  test(`"share this once": one call, local, from ${kind.client}`, async (t) => {
    const host = await openHost(t, kind)
    const { text, value } = await host.call('send_whisper', {
      planId: 'spark',
      name: 'door',
      text: 'mellon',
      readLimit: 1,
    })
    const { code } = value.bought as { code: string }
    assert.ok(text.includes(code))
    assert.equal(
      new TextDecoder().decode((await host.server.mayfly.readWhisper(code)).data),
      'mellon',
    )
  })
}

/** A text of a result in JSON, as the model reads it. */
const parsed = (seen: string): string => seen.replaceAll('\\n', '\n').replaceAll('\\"', '"')
