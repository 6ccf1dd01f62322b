import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { commandLine, WITH_WALLET } from '../support/command-line.ts'
import { temporaryFolder } from '../support/folder.ts'
import { startServer } from '../support/server.ts'

test('an intent is made, paid, proven, and its receipt verified by anyone', async (t) => {
  const { url, file } = await startServer(t, { MAYFLY_GATE: 'on' })
  const cli = await commandLine(t, url)
  const { projectId, capability } = await cli.json(
    [
      ...['gate', 'project', 'add', '--address', 'alice@example.com', '--credits', '2'],
      ...['--route', 'ping=GET:/ping:5', '--json'],
    ],
    { environment: { MAYFLY_DATABASE_URL: `sqlite:${file}`, MAYFLY_GATE: 'on' } },
  )
  const key = join(await temporaryFolder(t), 'key')
  writeFileSync(key, `${capability}\n`)
  const project = ['--project', String(projectId), '--key-file', key]
  const quote = await cli.json(['gate', 'intent', ...project, '--route', 'ping', '--path', '/ping'])
  assert.equal(quote.amountSats, 5)
  const intent = String(quote.intentId)
  const paid = await cli.json(['pay', String(quote.bolt11), '--show-preimage'], WITH_WALLET)
  const proven = await cli.json(['gate', 'prove', intent, ...project], {
    input: `${paid.preimage}\n`,
  })
  const receipt = String(proven.receipt)
  assert.equal((await cli.json(['gate', 'poll', intent, ...project])).settled, true)

  const said = await cli.json(['gate', 'verify'], { input: receipt })
  assert.deepEqual([said.aud, said.route, said.sat], [projectId, 'ping', 5])
  const forged = await cli.run(['gate', 'verify'], { input: `${receipt.slice(0, -4)}AAAA` })
  assert.equal(forged.code, 1)
  assert.match(forged.err, /The receipt is not valid/)
  const other = await cli.run(['gate', 'verify', '--project', `gate_project_${'0'.repeat(22)}`], {
    input: receipt,
  })
  assert.equal(other.code, 1)
  assert.match(other.err, /genuine, but for another project/)
})
