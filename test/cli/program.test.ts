import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { described } from '../../src/cli/catch/events.ts'
import { openOutput } from '../../src/cli/output.ts'
import { commandsOf, createProgram } from '../../src/cli/program.ts'
import { columns, harmless, shownOn } from '../../src/cli/text.ts'
import type { CatchEvent } from '../../src/client/index.ts'
import { commandLine, WITH_WALLET } from '../support/command-line.ts'
import { serve } from '../support/serving.ts'
import { until } from '../support/until.ts'
import { aUser } from '../support/user.ts'

/** Nothing listens there. */
const NOBODY = 'http://127.0.0.1:9'

describe('a command that cannot do its work', () => {
  test('a command that fails ends with the code that docs/cli.md has for it, and one sentence', async (t) => {
    const cli = await commandLine(t, NOBODY)
    type Case = [command: string, code: number, says: RegExp, environment?: Record<string, string>]
    const cases: Case[] = [
      ['nonsense', 2, /unknown command 'nonsense'/],
      ['catalog --nonsense', 2, /unknown option '--nonsense'/],
      ['catalog --url ftp://x', 2, /--url must be/],
      ['catalog --max-sats all', 2, /--max-sats <sats>.* must be a whole/],
      ['catalog', 5, /http:\/\/127\.0\.0\.1:9 does not answer/],
      ['catalog --url http://nowhere.invalid', 5, /^\S+invalid does not answer: name not found\./],
      ['show hooks', 4, /Nothing is saved as hooks/],
      ['catch events hooks', 4, /`mayfly list` shows what is/],
      ['whisper read mayfly-whisper:1:x', 2, /neither a share code/],
      ['whisper send /nowhere/x', 2, /^\/nowhere\/x does not exist\.\n$/],
      ['whisper send /', 2, /^\/ is a folder, and a file is needed\.\n$/],
      ['import / --name x', 2, /^\/ is a folder/],
      ['list', 1, /vault\.db cannot be read.*not a directory/, { XDG_DATA_HOME: process.execPath }],
      ['order show mine', 2, /^mine is neither a payment hash, nor an invoice/],
      ['takedown suspend mine', 2, /^mine is not the public id/],
      ['catalog', 2, /MAYFLY_WALET_URL is not a setting/, { MAYFLY_WALET_URL: 'simulator:' }],
    ]
    for (const [command, code, says, environment = {}] of cases) {
      const ended = await cli.run(command.split(' '), { environment })
      assert.match(ended.err, says, command)
      assert.deepEqual([ended.code, ended.out], [code, ''], command)
    }
  })

  test('a command that fails says what is at the address where it is not the service', async (t) => {
    for (const [status, headers, says] of [
      [200, {}, /answers, but not like a Mayfly of this version \(HTTP 200\)/],
      [404, {}, /answers, but not like a Mayfly of this version \(HTTP 404\)/],
      [301, { location: '/' }, /redirects to another address \(HTTP 301\)/],
    ] as const) {
      const url = await serve(t, (_, response) => {
        response.writeHead(status, headers).end('<h1>Hello</h1>')
      })
      const { code, err, out } = await (await commandLine(t, url)).run(['catalog'])
      assert.match(err, says)
      assert.deepEqual([code, out], [5, ''])
      const doctor = await (await commandLine(t, url)).run(['doctor'])
      assert.equal(doctor.code, 1)
      assert.match(doctor.out, /"service","state":"bad","says":"\S+ is another program's/)
    }
  })

  test('a command on a purchase that is not finished says how to finish it, and a mistyped name what is saved', async (t) => {
    const { cli } = await aUser(t)
    const buying = cli.start(['buy', 'pulse', '--name', 'backup'])
    await until('it waits', () => /Waiting for the payment/.test(buying.err()))
    buying.child.kill('SIGTERM')
    await buying.ended
    const ping = await cli.run(['pulse', 'ping', 'backup'])
    assert.deepEqual(
      [ping.code, ping.err],
      [
        4,
        'The purchase of backup is not finished. To continue: mayfly buy pulse --resume backup\n',
      ],
    )
    await cli.run(['buy', 'pulse', '--resume', 'backup'], WITH_WALLET)
    assert.equal((await cli.run(['pulse', 'ping', 'backup'])).code, 0)
    const typed = await cli.run(['pulse', 'ping', 'bakcup'])
    assert.match(typed.err, /^Nothing is saved as bakcup\. `mayfly list` shows/)
  })

  test('a command that fails tells programs on stdout too, whatever is wrong', async (t) => {
    const cli = await commandLine(t, NOBODY)
    for (const [args, error] of [
      [['show', '--json'], "missing required argument 'name'"],
      [['--json', 'catch'], 'a command is missing'],
      [['catalog', '--json', '--nonsense'], "unknown option '--nonsense'"],
      [['show', 'x', '--json'], 'Nothing is saved as x. `mayfly list` shows what is.'],
    ] as const) {
      const ended = await cli.run([...args])
      assert.deepEqual(JSON.parse(ended.out), { error })
    }
    assert.equal((await cli.run(['pulse', 'run', '--', '--json'])).out, '')
  })

  test('a command that cannot write its answer says so', async (t) => {
    const cli = await commandLine(t, NOBODY)
    const { code, err } = await cli.withoutStdout(['list'])
    assert.deepEqual([code, err], [1, 'stdout cannot be used: EBADF.\n'])
  })

  test('a command with a wallet that is named wrongly says so, without the secret in it', async (t) => {
    const { cli } = await aUser(t)
    const { code, err, out } = await cli.run(['buy', 'catch'], {
      environment: { MAYFLY_WALLET_URL: 'phoenix://:hunter2@host' },
    })
    assert.equal(code, 2)
    assert.match(err, /MAYFLY_WALLET_URL/)
    assert.equal((err + out).includes('hunter2'), false)
    assert.deepEqual(await cli.json(['list']), [], 'nothing to go on with')
  })
})

test('every command has a help with examples, and the page of all is fresh', async (t) => {
  const cli = await commandLine(t, NOBODY)
  for (const command of commandsOf(await createProgram())) {
    if (command.commands.length > 0) continue
    let help = ''
    command.configureOutput({
      writeOut: (part) => {
        help += part
      },
    })
    command.outputHelp()
    assert.match(help, /\nExamples:\n {2}\S/, command.name())
  }
  assert.match((await cli.run(['help', 'catch', 'listen'])).out, /^Usage: mayfly catch listen/)
  assert.match((await cli.run(['help', 'buy', 'pulse'])).out, /\nEvery command also takes --json, /)
  const { code, out } = await cli.run(['help', 'buy'])
  assert.equal(code, 0)
  assert.match(out, /^Usage: mayfly buy/)
  for (const names of [['nope'], ['catch', 'nope'], ['catch', 'listen', 'nope']]) {
    const unknown = await cli.run(['help', ...names])
    assert.deepEqual([unknown.code, unknown.out], [2, ''], names.join(' '))
    assert.match(unknown.err, /^error: unknown command 'nope'/)
  }
  assert.match((await cli.run(['--version'])).out, /^\d+\.\d+\.\d+\n$/)
  const { version } = JSON.parse((await cli.run(['--version', '--json'])).out)
  assert.match(version, /^\d+\.\d+\.\d+$/)
})

test('text from others cannot steer a terminal', () => {
  assert.equal(
    harmless('a\u001b]0;x\u0007\r\n\u202e\u{e0041}b'),
    'a\\x1b]0;x\\x07\\x0d\\x0a\\u202e\\ue0041b',
  )
  assert.equal(harmless('a\n\tb\u009b', { lines: true }), 'a\n\tb\\x9b')
  assert.equal(harmless('grüße 👍 日本'), 'grüße 👍 日本')
})

test('an error of a service cannot steer a terminal', async (t) => {
  const url = await serve(t, (_request, response) => {
    response.writeHead(400).end(JSON.stringify({ error: 'no\u001b]0;x\u0007\u009b2J' }))
  })
  const cli = await commandLine(t, url)
  const { err } = await cli.run(['catalog'])
  assert.match(err, /answers, but not like a Mayfly/)
  assert.equal(harmless(err, { lines: true }), err)
})

test('neither a table nor an export can steer a terminal', () => {
  assert.equal(columns([['a\u009b2J', 'b\nc']]), 'a\\x9b2J  b\\x0ac\n')
  const exported = '{"body":"\u009b2J"}\n'
  assert.equal(shownOn({ isTTY: true }, exported), '{"body":"\\x9b2J"}\n')
  assert.equal(shownOn({ isTTY: false }, exported), exported)
})

test('the line of a webhook stays one line, whatever a service says', () => {
  const event = { path: '/a\n12:00:00  #2  POST /forged', query: '', bodyBytes: 1, sequence: 1 }
  const line = described({
    ...event,
    method: 'GET',
    receivedAt: '2026-11-24T00:00:00Z',
  } as CatchEvent)
  assert.match(line, /#1 {2}GET \/a\\x0a12:00:00 {2}#2 {2}POST \/forged {2}1 B$/)
})

test('no text of an answer steers the terminal, whatever a service says', (t) => {
  const written: unknown[] = []
  const was = process.stdout.isTTY
  const { answer, paint } = openOutput({}, false)
  const bold = paint('bold', 'next')
  t.mock.method(process.stdout, 'write', (text: unknown) => written.push(text) > 0)
  process.stdout.isTTY = true
  answer(null, `${bold}\tat \u001b]0;title\u0007\u202e \u001b[8mhidden\n`)
  process.stdout.isTTY = was
  t.mock.restoreAll()
  assert.deepEqual(written, [`${bold}\tat \\x1b]0;title\\x07\\u202e \\x1b[8mhidden\n`])
})
