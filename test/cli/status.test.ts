import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commandLine, WITH_WALLET } from '../support/command-line.ts'
import { startServer } from '../support/server.ts'

test('the list has what the service said last of a purchase of any product, also while the service is away', async (t) => {
  const server = await startServer(t)
  const cli = await commandLine(t, server.url)
  await cli.json(['buy', 'catch', '--name', 'hooks'], WITH_WALLET)
  await cli.json(['buy', 'pulse', '--name', 'beat'], WITH_WALLET)
  const sending = ['whisper', 'send', '--receipt', '--name', 'note']
  await cli.json(sending, { ...WITH_WALLET, input: 'the letter' })
  const states = async () => {
    const list = (await cli.json(['list'])) as unknown as { name: string; state: string }[]
    return Object.fromEntries(list.map(({ name, state }) => [name, state]))
  }
  assert.deepEqual(await states(), { beat: 'saved', hooks: 'saved', note: 'saved' })
  for (const name of ['hooks', 'beat', 'note']) await cli.json(['status', name])
  await server.stop()
  assert.deepEqual(await states(), { beat: 'waiting', hooks: 'active', note: 'active' })
})
