import assert from 'node:assert/strict'
import { test } from 'node:test'
import { anInbox } from '../../support/catch.ts'
import { runCommand } from '../../support/command.ts'
import { startServer } from '../../support/server.ts'
import { settingsFor } from '../../support/store.ts'

test('an inbox is suspended and resumed beside the service, and the command says so when it was before', async (t) => {
  const server = await startServer(t)
  const { publicId } = await anInbox(server)
  const mayfly = (verb: string) => runCommand([verb, publicId], settingsFor(server.databaseUrl))
  const status = async () => (await fetch(`${server.url}/c/${publicId}`)).status

  assert.deepEqual(await mayfly('suspend'), {
    code: 0,
    out: `${publicId} is suspended.\n`,
    err: '',
  })
  assert.equal(await status(), 401)
  assert.deepEqual(await mayfly('suspend'), {
    code: 1,
    out: '',
    err: `${publicId} is unknown, deleted, or was already suspended.\n`,
  })
  assert.deepEqual(await mayfly('resume'), { code: 0, out: `${publicId} is active.\n`, err: '' })
  assert.equal(await status(), 204)
})

test('a store that cannot be opened ends the command with a sentence', async () => {
  const nowhere = { MAYFLY_DATABASE_URL: 'sqlite:/dev/null/store/mayfly.db' }
  const { code, out, err } = await runCommand(['suspend', `catch_${'0'.repeat(22)}`], nowhere)
  assert.deepEqual([code, out], [1, ''])
  assert.match(err, /^The folder of \S+ cannot be made: [^\n]+\.\n$/)
})
