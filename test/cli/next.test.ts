import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answersTo } from '../support/catch-stream.ts'
import { commandLine, WITH_WALLET } from '../support/command-line.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

test('catch next waits for one webhook that the filter means, and its exit code says what came of it', async (t) => {
  const { url } = await startServer(t)
  const cli = await commandLine(t, url)
  const { ingestUrl } = await cli.json(['buy', 'catch', '--name', 'hooks'], WITH_WALLET)
  const next = ['catch', 'next', 'hooks']

  const coming = cli.json([...next, '--after', '0', '--filter', 'method=PUT', '--timeout', '60'])
  for (const method of ['POST', 'PUT']) {
    await fetch(`${ingestUrl}/${method}`, { method, body: `by ${method}` })
  }
  const event = await coming
  assert.deepEqual([event.sequence, event.path, event.body], [2, '/PUT', 'by PUT'])
  assert.equal((await cli.json([...next, '--after', '0'])).sequence, 1)

  const late = await cli.run([...next, '--timeout', '1', '--json'])
  assert.deepEqual([late.code, JSON.parse(late.out)], [1, { error: lateSentence }])
  for (const wrong of [
    ['--timeout', '0'],
    ['--after', '-1'],
    ['--filter', 'x=y'],
  ]) {
    assert.equal((await cli.run([...next, ...wrong])).code, 2, wrong.join(' '))
  }
  const asked = answersTo(t, '/events?after=2&wait=25&limit=1')
  const waiting = cli.start([...next, '--after', '2'])
  await until('it waits', () => asked.length > 0)
  assert.equal((await cli.run(['catch', 'destroy', 'hooks', '--yes'])).code, 0)
  assert.equal((await waiting.ended).code, 4)
})

const lateSentence = 'No webhook arrived within --timeout.'
