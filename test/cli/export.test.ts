import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { containsToken } from '../../src/lib/ids.ts'
import { commandLine, WITH_WALLET } from '../support/command-line.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { startServer } from '../support/server.ts'
import { putSaved, savedText } from '../support/vault.ts'

const run = promisify(execFile)

test('a ping-only export has no owner token, and pings on another machine', async (t) => {
  const { owner, url, heartbeats } = await aMonitor(t)
  const { code, out: file, err } = await owner.run(['export', 'beat', '--ping-only'])
  assert.deepEqual([code, err], [0, ''])
  assert.doesNotMatch(file, /owner/i)
  const server = await commandLine(t, url)
  await server.run(['import', '-', '--name', 'job'], { input: file })
  assert.doesNotMatch(savedText(server.folder, 'job'), /owner/i)

  assert.equal((await server.json(['pulse', 'ping', 'job'])).pinged, true)
  const ran = await server.run(['pulse', 'run', 'job', '--', 'true'])
  assert.deepEqual([ran.code, ran.err], [0, ''])
  assert.equal(await heartbeats(), 3)
  assert.equal((await server.run(['export', 'job', '--ping-only'])).out, file)
  assert.match((await server.run(['show', 'job'])).out, /"product":"pulse"/)
  assert.match((await server.run(['list'])).out, /"pingOnly":true/)
})

test('what only the owner may do is refused with a sentence where a monitor is saved for pings only', async (t) => {
  const { owner, url } = await aMonitor(t)
  const { out: file } = await owner.run(['export', 'beat', '--ping-only'])
  const server = await commandLine(t, url)
  await server.run(['import', '-', '--name', 'job'], { input: file })
  for (const args of [
    ['status', 'job'],
    ['pulse', 'set', 'job', '--public'],
    ['destroy', 'job', '--yes'],
    ['alerts', 'job', '--none'],
    ['whisper', 'send', '--when-late', 'job'],
    ['export', 'job'],
  ]) {
    const { code, err } = await server.run(args, { input: 'x' })
    assert.deepEqual(
      [code, err],
      [2, "job is saved here for pings only. Run this where its owner's token is.\n"],
      args.join(' '),
    )
  }
  assert.equal((await server.run(['forget', 'job'])).code, 0, 'its owner still has it')
})

test('an export as a configuration of curl pings without Mayfly, and without a token in its arguments', async (t) => {
  const { owner, heartbeats } = await aMonitor(t)
  const file = join(await temporaryFolder(t), 'beat.curl')
  const write = ['export', 'beat', '--ping-only', '--as', 'curl', '--out', file]
  await owner.json(write)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.doesNotMatch(readFileSync(file, 'utf8'), /owner/i)
  await run('curl', ['-K', file])
  assert.equal(await heartbeats(), 1)
  assert.match((await owner.run(write)).err, /already exists, and is never overwritten/)
  assert.equal((await owner.run(['export', 'beat', '--as', 'curl'])).code, 2)
})

test('a capability whose owner token is damaged is not taken for one that only pings', async (t) => {
  const { owner } = await aMonitor(t)
  const damaged = savedText(owner.folder, 'beat').replace(/pulse_owner_\w+/, 'pulse_owner_x')
  putSaved(owner.folder, 'beat', damaged)
  const { err } = await owner.run(['pulse', 'ping', 'beat'])
  assert.match(err, /is not a capability/)
  assert.equal(containsToken(err), false)
})

test('an import of nothing says that nothing came, and one of something else what is wanted', async (t) => {
  const { owner } = await aMonitor(t)
  for (const args of [
    ['import', '-'],
    ['import', '-', '--name', 'job'],
  ]) {
    const nothing = await owner.run(args, { input: '\n' })
    assert.equal(nothing.code, 2)
    assert.match(nothing.err, /^There is nothing in it\. .*`mayfly export`/)
    const other = await owner.run(args, { input: '{"a":1}' })
    assert.match(other.err, /^That is not a capability/)
  }
})

async function aMonitor(t: After) {
  const { url } = await startServer(t)
  const owner = await commandLine(t, url)
  await owner.json(['buy', 'pulse', '--name', 'beat'], WITH_WALLET)
  const heartbeats = async () => (await owner.json(['status', 'beat'])).acceptedHeartbeatCount
  return { owner, url, heartbeats }
}
