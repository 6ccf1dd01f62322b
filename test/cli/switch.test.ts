import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WITH_WALLET } from '../support/command-line.ts'
import { aUser } from '../support/user.ts'

test('a switch says what arms it, and is refused before anything is bought while its monitor is not healthy', async (t) => {
  const { cli } = await aUser(t)
  await cli.json(['buy', 'pulse', '--plan', 'long', '--name', 'alive'], WITH_WALLET)
  const send = ['whisper', 'send', '--when-late', 'alive', '--name', 'will']
  const early = await cli.run(send, { ...WITH_WALLET, input: 'x' })
  assert.deepEqual(
    [early.code, early.err],
    [
      2,
      'The switch of alive cannot be bound while the monitor is waiting. First: mayfly ping alive\n',
    ],
  )
  await cli.json(['ping', 'alive'])
  const { armedBy } = await cli.json(send, { ...WITH_WALLET, input: 'x' })
  assert.equal(armedBy, 'mayfly ping alive')
  const { err } = await cli.run(['whisper', 'read', 'will'])
  assert.match(err, /If it waits for a monitor to fall silent, it opens only then/)
  for (const time of ['once', 'again']) {
    const retired = await cli.run(['pulse', 'switch', 'alive', '--retire'])
    assert.equal(retired.code, 0, time + retired.err)
  }
})

test('a whisper that outlasts the monitor of its switch is refused, and the sentence says so', async (t) => {
  const { cli } = await aUser(t, { alive: 'pulse' })
  await cli.json(['ping', 'alive'])
  const send = ['whisper', 'send', '--plan', 'long', '--when-late', 'alive']
  const { code, err } = await cli.run(send, { ...WITH_WALLET, input: 'x' })
  assert.equal(code, 2)
  assert.match(err, /must last longer than the plan of the whisper: `mayfly extend`/)
})
