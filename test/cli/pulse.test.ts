import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { OLDER } from '../support/bin.ts'
import { WITH_WALLET } from '../support/command-line.ts'
import type { After } from '../support/folder.ts'
import { until } from '../support/until.ts'
import { aUser } from '../support/user.ts'
import { putSaved } from '../support/vault.ts'

describe('pulse run', () => {
  test('pulse run tells of the start of the command, and how it ended', async (t) => {
    const { cli, server } = await aMonitor(t)
    const saved = await cli.json(['show', 'beat', '--reveal'])
    const { publicId, ownerToken } = saved as { publicId: string; ownerToken: string }
    const monitor = server.mayfly.pulse({ publicId, ownerToken })
    const told = async () => {
      const { state, failure, openRuns, lastRun, acceptedHeartbeatCount } = await monitor.status()
      assert.ok((lastRun?.durationSeconds ?? -1) >= 0)
      const exitCode = lastRun?.exitCode
      return { state, failed: failure?.exitCode, openRuns, exitCode, acceptedHeartbeatCount }
    }
    const none: unknown[] = []
    assert.equal((await cli.run(['pulse', 'run', 'beat', '--', 'sh', '-c', 'exit 7'])).code, 7)
    assert.deepEqual(await told(), {
      state: 'late',
      failed: 7,
      openRuns: none,
      exitCode: 7,
      acceptedHeartbeatCount: 2,
    })
    const done = await cli.run(['pulse', 'run', 'beat', '--', 'true'])
    assert.deepEqual([done.code, done.err], [0, ''])
    assert.deepEqual(await told(), {
      state: 'operational',
      failed: undefined,
      openRuns: none,
      exitCode: 0,
      acceptedHeartbeatCount: 4,
    })
  })

  test('pulse run --ping-only pings when the command ends with 0, and only then', async (t) => {
    const { cli, pings } = await aMonitor(t)
    const run = ['pulse', 'run', '--ping-only', 'beat', '--']
    const failed = await cli.run([...run, 'sh', '-c', 'echo no >&2; exit 7'])
    assert.deepEqual([failed.code, failed.out, failed.err], [7, '', 'no\n'])
    assert.equal(await pings(), 0)
    const done = await cli.run([...run, 'sh', '-c', 'cat; echo "$@"', '-', '--json'], {
      input: 'in ',
    })
    assert.deepEqual([done.code, done.out, done.err], [0, 'in --json\n', ''])
    assert.equal(await pings(), 1)
  })

  test('pulse run passes signals on, and ends as the command did', async (t) => {
    const { cli, pings } = await aMonitor(t)
    const script = 'trap "echo got it; exit 9" TERM; echo ready; while :; do read -r _ || :; done'
    const running = cli.start(['pulse', 'run', 'beat', '--', 'bash', '-c', script])
    await until('it runs', () => running.out().includes('ready'))
    running.child.kill('SIGTERM')
    const { code, out } = await running.ended
    assert.deepEqual([code, out], [9, 'ready\ngot it\n'])
    const killed = await cli.run(['pulse', 'run', 'beat', '--', 'sh', '-c', 'kill -9 $$'])
    assert.equal(killed.code, 137)
    const missing = await cli.run(['pulse', 'run', 'beat', '--', 'no-such-command'])
    assert.equal(missing.code, 127)
    assert.match(missing.err, /there is no such command/)
    assert.equal(await pings(), 6, 'a start and a failure each')
  })

  test('pulse run runs the job whatever is wrong around it, and ends as the job does', async (t) => {
    const { cli } = await aMonitor(t)
    putSaved(cli.folder, 'damaged', '{')
    const job = ['--', 'sh', '-c', 'echo done; exit "$0"']
    const wrong: [string, string[], Record<string, string>][] = [
      ['an unknown name', ['pulse', 'run', 'nobody'], {}],
      ['a name that is none', ['pulse', 'run', '../x'], {}],
      ['no name at all', ['pulse', 'run'], {}],
      ['a file that cannot be read', ['pulse', 'run', 'damaged'], {}],
      [
        'settings that are wrong',
        ['pulse', 'run', 'nobody'],
        { MAYFLY_MAX_SATS: 'x', MAYFLY_URL: ':' },
      ],
      ['an option that is unknown', ['pulse', 'run', '--bogus', 'beat'], { MAYFLY_URL: 'x' }],
      ['an older Node', ['pulse', 'run', 'beat'], { NODE_OPTIONS: OLDER }],
    ]
    for (const [what, args, environment] of wrong) {
      for (const code of [0, 3]) {
        const ran = await cli.run([...args, ...job, String(code)], { environment })
        assert.deepEqual([ran.code, ran.out], [code, 'done\n'], what)
        const isTold = code === 0 && what !== 'an option that is unknown'
        assert.equal(
          /The command succeeded, and (?:the|there is no) ping/.test(ran.err),
          isTold,
          what,
        )
      }
    }
  })

  test('pulse run takes its job with or without the dashes, its options before or after the name, and none of the job', async (t) => {
    const { cli, pings } = await aMonitor(t)
    const plain = await cli.run(['--quiet', 'pulse', '--json', 'run', 'beat', 'echo', 'a', '-b'])
    assert.deepEqual([plain.code, plain.out], [0, 'a -b\n'])
    const dashes = await cli.run(['pulse', 'run', 'beat', '--', 'echo', '--', '--help'])
    assert.deepEqual([dashes.code, dashes.out], [0, '-- --help\n'])
    const own = await cli.run(['pulse', 'run', 'beat', 'echo', '--ping-only', '--', '-x'])
    assert.deepEqual([own.code, own.out], [0, '--ping-only -- -x\n'])
    assert.equal(await pings(), 6, 'a start and an end each')
    await cli.run(['pulse', 'run', 'beat', '--ping-only', '--', 'true'])
    assert.equal(await pings(), 7)
    assert.equal((await cli.run(['pulse', 'run', 'beat'])).code, 2)
    assert.match(
      (await cli.run(['pulse', 'run', '--help'])).out,
      /run a command, and report its start/,
    )
  })

  test('pulse run passes every signal on that ends a job, and says which one did', async (t) => {
    const { cli } = await aMonitor(t)
    for (const [signal, number] of [
      ['SIGHUP', 1],
      ['SIGINT', 2],
      ['SIGQUIT', 3],
      ['SIGTERM', 15],
    ] as const) {
      const running = cli.start(
        ['pulse', 'run', 'beat', '--', 'sh', '-c', 'echo ready; exec cat'],
        {
          input: null,
        },
      )
      await until('it runs', () => running.out().includes('ready'))
      running.child.kill(signal)
      assert.equal((await running.ended).code, 128 + number, signal)
    }
  })
})

test('pulse set changes what is given, and destroy needs to be meant', async (t) => {
  const { cli } = await aMonitor(t)
  const changed = await cli.json([
    ...['pulse', 'set', 'beat', '--title', 'Backup', '--interval', '3600', '--grace', '600'],
    '--public',
  ])
  assert.deepEqual(
    [
      changed.name,
      changed.expectedIntervalSeconds,
      changed.graceSeconds,
      changed.publicStatusEnabled,
    ],
    ['Backup', 3600, 600, true],
  )
  const page = await fetch(String(changed.statusUrl))
  assert.deepEqual(
    [page.status, page.headers.get('content-type')],
    [200, 'text/html; charset=utf-8'],
  )
  const badge = await fetch(String(changed.badgeUrl))
  assert.deepEqual(
    [badge.status, badge.headers.get('content-type')?.split(';')[0]],
    [200, 'image/svg+xml'],
  )
  const hidden = await cli.json(['pulse', 'set', 'beat', '--no-public'])
  assert.equal(hidden.publicStatusEnabled, false)
  assert.deepEqual([hidden.statusUrl, hidden.badgeUrl], [undefined, undefined])
  assert.equal((await cli.run(['pulse', 'set', 'beat'])).code, 2)
  assert.equal((await cli.run(['pulse', 'set', 'beat', '--grace', '1'])).code, 2)
  assert.equal((await cli.run(['destroy', 'beat'])).code, 2)
  assert.equal((await cli.run(['destroy', 'beat', '--yes'])).code, 0)
  assert.equal((await cli.run(['status', 'beat'])).code, 4)
})

test('pulse set says what the plan allows where the service refuses', async (t) => {
  const { cli } = await aMonitor(t, '--plan', 'long')
  const { code, err } = await cli.run(['pulse', 'set', 'beat', '--grace', '60'])
  assert.equal(code, 2)
  assert.equal(err, 'The service says: invalid settings (graceSeconds: 300 to 604800).\n')
})

async function aMonitor(t: After, ...options: string[]) {
  const { cli, server } = await aUser(t)
  await cli.json(['buy', 'pulse', '--name', 'beat', ...options], WITH_WALLET)
  return {
    cli,
    server,
    pings: async () => (await cli.json(['status', 'beat'])).acceptedHeartbeatCount,
  }
}
