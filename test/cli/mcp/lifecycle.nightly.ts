import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type CommandLine,
  commandLine,
  type Running,
  WITH_WALLET,
} from '../../support/command-line.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { connectHost, HOSTS } from '../../support/mcp-host.ts'
import { startServer } from '../../support/server.ts'
import { until } from '../../support/until.ts'
import { aUser } from '../../support/user.ts'

const MODERN = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
}

/** A process that is spoken to in lines, without a client. */
function raw(cli: CommandLine) {
  const running = cli.start(['mcp'], { ...WITH_WALLET, input: null })
  let id = 0
  return {
    running,
    async call(name: string, args: object, more: object = {}): Promise<Answer> {
      id += 1
      const asked = id
      const params = { name, arguments: args, _meta: MODERN, ...more }
      running.child.stdin?.write(message('tools/call', params, asked))
      await until('the answer has come', async () => answerTo(running, asked) !== undefined)
      return answerTo(running, asked) as Answer
    },
  }
}

const message = (method: string, params: object, id = 99): string =>
  `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`

type Answer = {
  id: number
  result: {
    resultType?: string
    requestState?: string
    isError?: boolean
    structuredContent?: Record<string, unknown>
  }
  error?: { message: string }
}

const answerTo = (running: Running, id: number): Answer | undefined =>
  running
    .out()
    .split('\n')
    .slice(0, -1)
    // Anything else than messages on stdout throws here.
    .map((line) => JSON.parse(line) as Answer)
    .find((message) => message.id === id)

test('an answer that nobody was asked for, or that was given to another question, counts for nothing', async (t) => {
  const { url } = await startServer(t)
  const { call } = raw(await commandLine(t, url))
  const inputResponses = { confirm: { action: 'accept', content: {} } }
  const hooks = { planId: 'spark', name: 'hooks' }
  const unasked = await call('buy_inbox', hooks, { inputResponses })
  assert.equal(unasked.result.resultType, 'input_required')
  const { requestState } = unasked.result
  const other = await call(
    'buy_inbox',
    { planId: 'long', name: 'hooks' },
    { inputResponses, requestState },
  )
  assert.equal(other.result.resultType, 'input_required')
  const forged = await call('buy_inbox', hooks, {
    inputResponses,
    requestState: `${requestState}x`,
  })
  assert.match(forged.error?.message ?? '', /requestState/)
  const agreed = await call('buy_inbox', hooks, { inputResponses, requestState })
  assert.equal(agreed.result.structuredContent?.state, 'settled')
})

for (const kind of HOSTS) {
  test(`${kind} is told of the progress of a wait, and can cancel it`, async (t) => {
    const { url } = await startServer(t)
    const home = await temporaryFolder(t)
    const environment = WITH_WALLET.environment
    const host = await connectHost(t, { kind, home, url, environment })
    await host.call('buy_inbox', { planId: 'spark', name: 'hooks' })
    const cancel = new AbortController()
    const progress = await new Promise<string | undefined>((resolve) => {
      host
        .call(
          'wait_for_webhook',
          { name: 'hooks', timeoutSeconds: 600 },
          { signal: cancel.signal, onprogress: ({ message }) => resolve(message) },
        )
        .catch(() => undefined)
    })
    assert.equal(progress, 'Waiting, 600 seconds left')
    cancel.abort()
    const over = await host.call('wait_for_webhook', { name: 'hooks', timeoutSeconds: 1 })
    const { reason, after, webhooks } = JSON.parse(over.text)
    assert.deepEqual([reason, after, webhooks], ['timeout', 0, []])
    assert.doesNotMatch(host.err(), /Abort|fault/, 'a cancelled call is no fault')
  })
}

describe('the end', () => {
  const endings: [string, (running: Running) => void][] = [
    ['its input ends', ({ child }) => child.stdin?.end()],
    ['SIGTERM comes', ({ child }) => child.kill('SIGTERM')],
    ['SIGINT comes', ({ child }) => child.kill('SIGINT')],
    [
      'its host reads no more',
      ({ child }) => {
        child.stdout?.destroy()
        child.stdin?.write(message('tools/list', { _meta: MODERN }))
      },
    ],
  ]
  for (const [when, end] of endings) {
    test(`mayfly mcp ends with 0 when ${when}, while a call waits`, async (t) => {
      const { cli } = await aUser(t, { hooks: 'catch' })
      const { running, call } = raw(cli)
      assert.equal((await call('read_inbox', { name: 'hooks' })).result.isError, undefined)
      const params = { name: 'wait_for_webhook', arguments: { name: 'hooks' }, _meta: MODERN }
      running.child.stdin?.write(message('tools/call', params, 99))
      assert.equal((await call('catalog', {})).result.isError, undefined)
      end(running)
      const { code, signal } = await running.ended
      assert.deepEqual([code, signal], [0, null])
    })
  }

  test('a message that is too long ends it, in words, and what is no message does not', async (t) => {
    const { url } = await startServer(t)
    const { running, call } = raw(await commandLine(t, url))
    running.child.stdin?.write('this is no JSON\n')
    assert.equal((await call('catalog', {})).result.isError, undefined)
    running.child.stdin?.on('error', () => undefined)
    running.child.stdin?.write('x'.repeat(11 * 1024 * 1024))
    const { code, err } = await running.ended
    assert.equal(code, 0)
    assert.match(err, /^The host sent what is not understood: .*\n$/)
  })
})
