import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { WITH_WALLET } from '../support/command-line.ts'
import { until } from '../support/until.ts'
import { aUser } from '../support/user.ts'
import { inVaultOf } from '../support/vault.ts'
import { anInbox, linesOf, listenOnce, sendAll } from './listening.ts'

describe('catch listen --retry', () => {
  test('catch listen --retry sends again what fails before all that came after it, so many times, and goes on', async (t) => {
    const { cli, ingest, receiver } = await anInbox(t)
    const answers = [503, 429, 200, 500, 500, 500, 200]
    receiver.says = 'later'
    receiver.answer = () => answers.shift() ?? 404
    await sendAll(ingest, 3)
    const listen = ['catch', 'listen', 'hooks', '--since', 'start', '--retry', '2']
    const running = cli.start([...listen, '--forward', receiver.url])
    await until('all are told', () => running.out().split('\n').length > 3)
    running.child.kill('SIGTERM')
    const { out, err } = await running.ended
    assert.deepEqual(
      receiver.bodies(),
      [1, 1, 1, 2, 2, 2, 3].map((number) => `webhook ${number}`),
    )
    assert.deepEqual(
      linesOf(out).map(({ sequence, status, tries }) => [sequence, status, tries]),
      [
        [1, 200, 3],
        [2, 500, 3],
        [3, 200, 1],
      ],
    )
    assert.match(err, /#1: 503 in \d+ ms, it says: later\. Again in 1 s \(1 of 2\)\./)
    assert.match(err, /#1: 429 in \d+ ms, it says: later\. Again in \d s \(2 of 2\)\./)
    assert.match(err, /To send again all that failed: mayfly catch replay hooks --failed --to http/)
  })

  test('a stop or a kill in the pause of catch listen --retry does not lose the webhook', async (t) => {
    const { cli, ingest, receiver } = await anInbox(t)
    receiver.answer = () => 500
    await sendAll(ingest, 1)
    const listen = ['catch', 'listen', 'hooks', '--retry', '20', '--forward', receiver.url]
    for (const [since, signal, code] of [
      [['--since', 'start'], 'SIGTERM', 130],
      [[], 'SIGKILL', null],
    ] as const) {
      const running = cli.start([...listen, ...since])
      await until('it pauses', () => /Again in/.test(running.err()))
      running.child.kill(signal)
      const ended = await running.ended
      assert.equal(ended.code, code)
      assert.equal(ended.out, '')
    }
    receiver.answer = () => 200
    const before = receiver.got.length
    const last = await cli.run([...listen, '--once'])
    assert.deepEqual([last.code, receiver.got.length], [0, before + 1])
    assert.doesNotMatch(last.err, /ha(?:s|ve) failed/)
  })

  test('catch listen --once --forward fails if the receiver does not accept the webhook, and goes on from there', async (t) => {
    const { cli, ingest, receiver } = await anInbox(t)
    await sendAll(ingest, 3)
    const listen = ['catch', 'listen', 'hooks', '--forward', receiver.url, '--once']
    const codes: unknown[] = []
    for (const [status, since] of [
      [404, ['--since', 'start']],
      [302, []],
      [500, []],
    ] as const) {
      receiver.answer = () => status
      codes.push((await cli.run([...listen, ...since])).code)
    }
    assert.deepEqual(codes, [1, 0, 1])
    assert.deepEqual(receiver.bodies(), ['webhook 1', 'webhook 2', 'webhook 3'])
  })

  test('catch listen --retry ends its pause when --timeout is over', async (t) => {
    const { cli, ingest, receiver } = await anInbox(t)
    receiver.answer = () => 500
    await sendAll(ingest, 1)
    const listen = ['catch', 'listen', 'hooks', '--since', 'start', '--retry', '20']
    const ended = await cli.run([...listen, '--forward', receiver.url, '--timeout', '3', '--once'])
    assert.deepEqual([ended.code, ended.out], [1, ''])
    assert.match(ended.err, /No webhook was delivered within 3 s\./)
  })
})

describe('catch replay --failed', () => {
  test('catch replay --failed sends all that failed again, and strikes out what the receiver takes', async (t) => {
    const { cli, ingest, receiver } = await anInbox(t)
    receiver.answer = ({ body }) => (body.toString() === 'webhook 2' ? 200 : 500)
    await sendAll(ingest, 4)
    const listen = ['catch', 'listen', 'hooks', '--forward', receiver.url]
    const running = cli.start([...listen, '--since', 'start'])
    await until('all are told', () => running.out().split('\n').length > 4)
    running.child.kill('SIGTERM')
    await running.ended
    const again = await cli.run([...listen, '--once', '--timeout', '1'])
    assert.match(
      again.err,
      /3 webhooks have failed before, or got no answer\. To send again all that failed/,
    )

    await cli.run(['catch', 'delete', 'hooks', '3'])
    receiver.got.length = 0
    receiver.answer = ({ body }) => (body.toString() === 'webhook 1' ? 422 : 200)
    const replay = ['catch', 'replay', 'hooks', '--failed', '--to', receiver.url]
    const first = await cli.run(replay)
    assert.equal(first.code, 1)
    assert.deepEqual(receiver.bodies(), ['webhook 1', 'webhook 4'])
    assert.deepEqual(
      linesOf(first.out).map(({ sequence, status }) => [sequence, status]),
      [
        [1, 422],
        [4, 200],
      ],
    )
    assert.match(first.err, /Webhook 3 was deleted, so it is struck out\./)
    assert.match(first.err, /did not accept 1 of 3\./)

    receiver.got.length = 0
    receiver.answer = () => 200
    assert.equal((await cli.run(replay)).code, 0)
    assert.deepEqual(receiver.bodies(), ['webhook 1'])
    const none = await cli.run(replay)
    assert.deepEqual([none.code, none.out, none.err], [0, '', 'Nothing of hooks has failed.\n'])
  })

  test('what a receiver hung up on is sent once and has failed, and one that cannot be reached strikes nothing out', async (t) => {
    const { cli, ingest, receiver } = await anInbox(t)
    receiver.answer = () => 'hang up'
    await sendAll(ingest, 1)
    const [told] = await listenOnce(cli, receiver.url)
    assert.deepEqual([receiver.got.length, told?.status, told?.tries], [1, null, 1])
    await receiver.close()
    const replay = ['catch', 'replay', 'hooks', '--failed', '--to', receiver.url]
    assert.equal((await cli.run(replay)).code, 5)
    await receiver.reopen()
    receiver.answer = () => 200
    assert.equal((await cli.run(replay)).code, 0)
    assert.equal(receiver.got.length, 2)
  })

  test('a webhook that the receiver takes has failed no more, by a replay of its own or forwarded again by --since', async (t) => {
    const { cli, ingest, receiver } = await anInbox(t)
    receiver.answer = () => 500
    await sendAll(ingest, 3)
    const listen = ['catch', 'listen', 'hooks', '--forward', receiver.url, '--once']
    for (const since of [['--since', 'start'], [], []]) await cli.run([...listen, ...since])
    const replay = async (which: string) => {
      const { code, err } = await cli.run(['catch', 'replay', 'hooks', which, '--to', receiver.url])
      return [code, err]
    }
    assert.deepEqual(await replay('1'), [1, `${receiver.url}/ did not accept 1 of 1.\n`])
    receiver.answer = () => 200
    assert.deepEqual(await replay('1'), [0, ''])
    await cli.run([...listen, '--since', '2'])
    receiver.got.length = 0
    assert.deepEqual(await replay('--failed'), [0, ''])
    assert.deepEqual(receiver.bodies(), ['webhook 2'])
  })
})

test('options of catch listen and catch replay that do not go together are refused', async (t) => {
  const { cli } = await anInbox(t)
  const nowhere = 'http://127.0.0.1:9'
  for (const [command, options, says] of [
    ['listen', ['--retry', '1'], /^--retry goes with --forward, which is missing\.\n$/],
    ['listen', ['--forward', nowhere, '--retry', '21'], /must be a whole number from 0 to 20/],
    ['replay', ['--to', nowhere], /^Name one webhook, or all that have failed by --failed\.\n$/],
    ['replay', ['1', '--failed', '--to', nowhere], /^Name one webhook, or all that have failed/],
  ] as const) {
    const { code, err } = await cli.run(['catch', command, 'hooks', ...options])
    assert.match(err, says)
    assert.equal(code, 2)
  }
})

test('a new inbox under the name of one that is gone begins at its own start', async (t) => {
  const { cli, ingest, receiver } = await anInbox(t)
  receiver.answer = () => 500
  await sendAll(ingest, 2)
  const listen = ['catch', 'listen', 'hooks', '--forward', receiver.url]
  const buyAgain = async (): Promise<string> => {
    const bought = await cli.json(['buy', 'catch', '--name', 'hooks'], WITH_WALLET)
    return String(bought.ingestUrl)
  }
  for (const end of [
    ['destroy', 'hooks', '--yes'],
    ['forget', 'hooks', '--yes'],
  ]) {
    await cli.run([...listen, '--since', 'start', '--once'])
    assert.equal((await cli.run(end)).code, 0)
    const left = 'select inbox from listening union select inbox from failed'
    assert.deepEqual(inVaultOf(cli.folder, left), [])
    await sendAll(await buyAgain(), 3)
    const replayed = await cli.run(['catch', 'replay', 'hooks', '--failed', '--to', receiver.url])
    assert.equal(replayed.err, 'Nothing of hooks has failed.\n')
    const { err } = await cli.run([...listen, '--once', '--timeout', '1'])
    assert.match(err, /3 earlier webhooks are skipped/)
    assert.doesNotMatch(err, /have failed|has failed/)
  }
})

test('catch listen shows what a burst beyond the rate was refused, once, and nothing of before', async (t) => {
  const { cli } = await aUser(t, {}, { MAYFLY_RATE_LIMITS: 'on' })
  const { ingestUrl } = await cli.json(['buy', 'catch', '--name', 'hooks'], WITH_WALLET)
  let refused = 0
  const burst = async (): Promise<void> => {
    const all = await Promise.all(
      Array.from({ length: 60 }, () => fetch(String(ingestUrl), { method: 'POST' })),
    )
    refused += all.filter(({ status }) => status === 429).length
  }
  const running = cli.start(['catch', 'listen', 'hooks'])
  await until('it listens', () => /Waiting for webhooks/.test(running.err()))
  const isTold = async (): Promise<boolean> => {
    if (/refused/.test(running.err())) return true
    await burst()
    return false
  }
  await until('it tells', isTold, { everyMs: 500 })
  running.child.kill('SIGTERM')
  const { err } = await running.ended
  assert.match(err, /\d+ webhooks were refused and not kept: they came faster than the rate/)
  const told = [...err.matchAll(/(\d+) webhooks? (?:was|were) refused/g)]
  const sum = told.reduce((before, [, count]) => before + Number(count), 0)
  assert.equal(sum > 0 && sum <= refused, true)
  const later = cli.start(['catch', 'listen', 'hooks'])
  await until('it listens', () => /Waiting for webhooks/.test(later.err()))
  later.child.kill('SIGTERM')
  assert.doesNotMatch((await later.ended).err, /refused/)
})
