import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../../src/lib/ids.ts'
import { anInbox } from '../../support/catch.ts'
import { runCommand } from '../../support/command.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { aMonitor, ping } from '../../support/pulse.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { query, settingsFor } from '../../support/store.ts'
import { aWhisper, read } from '../../support/whisper.ts'

/** `mayfly takedown …` beside a service. */
const takedownOf = (server: TestServer) => (args: string[]) =>
  runCommand(['takedown', ...args], settingsFor(server.databaseUrl))

test('each capability is suspended and resumed by its public id, and the command says so when it was before', async (t) => {
  const server = await startServer(t)
  const mayfly = takedownOf(server)
  const [inbox, sent, monitor] = await Promise.all([
    anInbox(server),
    aWhisper(server),
    aMonitor(server),
  ])
  const cases: [
    publicId: string,
    use: () => Promise<{ status: number }>,
    open: number,
    shut: number,
  ][] = [
    [inbox.publicId, () => fetch(`${server.url}/c/${inbox.publicId}`), 204, 401],
    [sent.publicId, () => read(server, sent), 200, 404],
    [monitor.publicId, () => ping(server, monitor), 204, 404],
  ]
  for (const [publicId, use, open, shut] of cases) {
    const suspended = await mayfly(['suspend', publicId])
    assert.deepEqual(suspended, { code: 0, out: `${publicId} is suspended.\n`, err: '' })
    assert.equal((await use()).status, shut)
    assert.deepEqual(await mayfly(['suspend', publicId]), {
      code: 1,
      out: '',
      err: `${publicId} is unknown, over, or was suspended before.\n`,
    })
    const resumed = await mayfly(['resume', publicId])
    assert.deepEqual(resumed, { code: 0, out: `${publicId} is resumed.\n`, err: '' })
    assert.equal((await use()).status, open)
    const again = await mayfly(['resume', publicId])
    assert.deepEqual(again, { code: 1, out: '', err: `${publicId} is not suspended.\n` })
  }
})

test('the list has the reasons, also while the service is stopped, and what was resumed on demand', async (t) => {
  const server = await startServer(t)
  const mayfly = takedownOf(server)
  const [first, second] = [await anInbox(server), await anInbox(server)]
  await server.stop()
  assert.equal((await mayfly(['list'])).out, 'Nothing is suspended.\n')
  await mayfly(['suspend', first.publicId, '--reason', 'phishing, case 17'])
  await mayfly(['suspend', second.publicId])
  const { out } = await mayfly(['list'])
  const time = '\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z'
  assert.match(
    out,
    new RegExp(
      `^${time}  ${second.publicId}  suspended\n${time}  ${first.publicId}  suspended  phishing, case 17\n$`,
    ),
  )
  await mayfly(['resume', second.publicId])
  const listed = async (...options: string[]): Promise<string[]> => {
    const { takedowns } = JSON.parse((await mayfly(['list', '--json', ...options])).out)
    return takedowns.map(({ publicId }: { publicId: string }) => publicId)
  }
  assert.deepEqual(await listed(), [first.publicId])
  assert.deepEqual(await listed('--all'), [second.publicId, first.publicId])
})

test('what has ended while it was suspended comes off the list when it is resumed', async (t) => {
  const server = await startServer(t)
  const mayfly = takedownOf(server)
  const { publicId } = await aMonitor(server)
  await mayfly(['suspend', publicId])
  await query(server, 'delete from pulse_monitor where public_id = $1', publicId)
  const { code, out } = await mayfly(['resume', publicId])
  assert.deepEqual([code, out], [0, `${publicId} has ended since. It is off the list.\n`])
  assert.equal((await mayfly(['list'])).out, 'Nothing is suspended.\n')
})

test('an id of nothing that can be suspended, and a reason of several lines, are refused', async (t) => {
  const server = await startServer(t)
  const mayfly = takedownOf(server)
  const project = newId('gate_project')
  const cases: [args: string[], code: number, says: string][] = [
    [['suspend', newId('catch')], 1, 'is unknown, over, or was suspended before.'],
    [['resume', newId('whisper')], 1, 'is not suspended.'],
    [['suspend', newId('pulse_status')], 2, 'is not the public id of a capability'],
    [['suspend', project], 2, `mayfly gate project suspend ${project}`],
    [['suspend', newId('catch'), '--reason', 'a\nb'], 2, 'one line'],
    [['suspend', newId('catch'), '--reason', 'a'.repeat(501)], 2, 'at most 500 characters'],
  ]
  for (const [args, code, says] of cases) {
    const ended = await mayfly(args)
    assert.deepEqual([ended.code, ended.out], [code, ''], args.join(' '))
    assert.ok(ended.err.includes(says), ended.err)
  }
})

test('a store that cannot be opened ends the command with a sentence', async (t) => {
  const folder = { MAYFLY_DATABASE_URL: `sqlite:${await temporaryFolder(t)}` }
  const args = ['takedown', 'suspend', newId('catch')]
  const { code, out, err } = await runCommand(args, folder)
  assert.deepEqual([code, out], [1, ''])
  assert.match(err, /^The database \S+ cannot be opened\. Check that [^\n]+\.\n$/)
})
