/** `mayfly pulse rotate`: what is saved, also if the process dies at the worst time. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { containsToken } from '../../src/lib/ids.ts'
import { commandLine, WITH_WALLET } from '../support/command-line.ts'
import type { After } from '../support/folder.ts'
import { startServer } from '../support/server.ts'
import { answerWith, passOn, serve } from '../support/serving.ts'
import { until } from '../support/until.ts'
import { aUser } from '../support/user.ts'
import { savedText } from '../support/vault.ts'

const ROTATE = ['pulse', 'rotate', 'beat']
const PING = ['pulse', 'ping', 'beat']

test('the new ping token is saved in place of the old one, and shown nowhere', async (t) => {
  const { cli } = await aUser(t, { beat: 'pulse' })
  const before = saved(cli.folder)
  const rotated = await cli.run(ROTATE)
  assert.deepEqual([rotated.code, rotated.err], [0, ''])
  assert.equal(containsToken(rotated.out), false)
  const after = saved(cli.folder)
  assert.notEqual(after.pingToken, before.pingToken)
  assert.deepEqual({ ...after, pingToken: '' }, { ...before, pingToken: '' })
  assert.equal((await cli.run(PING)).code, 0)
})

test('nothing is lost if the process is killed after the service has rotated: the next ping says what to do', async (t) => {
  const proxy = await aProxy(t, (await startServer(t)).url)
  const cli = await commandLine(t, proxy.url)
  await cli.run(['buy', 'pulse', '--name', 'beat'], WITH_WALLET)
  proxy.holdsBack = /\/tokens\/ping$/
  const running = cli.start(ROTATE)
  await until('the service has rotated', () => proxy.held > 0)
  running.child.kill('SIGKILL')
  await running.ended
  proxy.holdsBack = null
  const refused = await cli.run(PING)
  assert.deepEqual([refused.code, /mayfly pulse rotate beat/.test(refused.err)], [4, true])
  const ran = await cli.run(['pulse', 'run', 'beat', '--', 'true'])
  assert.deepEqual([ran.code, /mayfly pulse rotate beat/.test(ran.err)], [0, true])
  assert.equal((await cli.run(ROTATE)).code, 0)
  assert.equal((await cli.run(PING)).code, 0)
})

test('a rotation that the service refuses changes nothing', async (t) => {
  const { cli } = await aUser(t, { beat: 'pulse' })
  const before = saved(cli.folder)
  const file = (await cli.run(['export', 'beat', '--ping-only'])).out
  await cli.run(['import', '-', '--name', 'job'], { input: file })
  const job = await cli.run(['pulse', 'rotate', 'job'])
  assert.deepEqual([job.code, /for pings only/.test(job.err)], [2, true])
  const elsewhere = await startServer(t)
  const gone = await commandLine(t, elsewhere.url)
  await gone.run(['import', '-', '--name', 'beat'], {
    input: JSON.stringify({ ...before, baseUrl: elsewhere.url }),
  })
  assert.equal((await gone.run(ROTATE)).code, 4)
  assert.deepEqual(saved(cli.folder), before)
})

const saved = (folder: string): Record<string, string> => JSON.parse(savedText(folder, 'beat'))

/** Passes requests on. It never gives back the answers of paths that it is told to hold back. */
async function aProxy(t: After, target: string) {
  const proxy = { url: '', held: 0, holdsBack: null as RegExp | null }
  proxy.url = await serve(t, async (request, response) => {
    const passed = await passOn(target, request)
    if (proxy.holdsBack?.test(request.url ?? '/')) proxy.held++
    else answerWith(response, passed)
  })
  return proxy
}
