import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { WITH_WALLET } from '../support/command-line.ts'
import { temporaryFolder } from '../support/folder.ts'
import { aUser } from '../support/user.ts'

test('catch verify takes the secret from a file or stdin, and its exit code says whether the signature is valid', async (t) => {
  const { cli } = await aUser(t)
  const { ingestUrl } = await cli.json(['buy', 'catch', '--name', 'hooks'], WITH_WALLET)
  const secret = 'the secret of the sender'
  const body = '{"action":"opened"}'
  const sign = (encoding: 'hex' | 'base64') =>
    createHmac('sha256', secret).update(body).digest(encoding)
  const headers = { 'x-hub-signature-256': `sha256=${sign('hex')}`, 'x-sig': sign('base64') }
  await fetch(String(ingestUrl), { method: 'POST', headers, body })
  await fetch(String(ingestUrl), { method: 'POST', body })
  const file = join(await temporaryFolder(t), 'secret')
  await writeFile(file, `${secret}\n`)
  const verify = ['catch', 'verify', 'hooks']

  const right = await cli.json([...verify, '1', '--secret-file', file])
  assert.deepEqual(
    [right.sequence, right.valid, right.provider],
    [1, true, 'github'],
    'the sender is guessed',
  )
  const fromStdin = { input: `${secret}\r\n` }
  assert.equal((await cli.run([...verify, '1', '--provider', 'github'], fromStdin)).code, 0)
  const hmac = ['--provider', 'hmac', '--header', 'X-Sig', '--encoding', 'base64']
  assert.equal((await cli.run([...verify, '1', ...hmac], fromStdin)).code, 0)

  const wrong = await cli.run([...verify, '1'], { input: 'another' })
  const { valid, rule } = JSON.parse(wrong.out)
  assert.deepEqual([wrong.code, valid, rule], [1, false, 'signature mismatch'])
  assert.doesNotMatch(wrong.out + wrong.err, /another"|the secret of the sender/)
  const unsigned = await cli.run([...verify, '2', '--provider', 'github'], fromStdin)
  assert.deepEqual([unsigned.code, JSON.parse(unsigned.out).rule], [1, 'header missing'])

  for (const options of [
    ['2'],
    ['1', '--provider', 'gitlab'],
    ['1', '--provider', 'hmac'],
    ['1', ...hmac, '--algorithm', 'md5'],
    ['1', '--provider', 'slack', '--tolerance', 'x'],
  ]) {
    assert.equal((await cli.run([...verify, ...options], fromStdin)).code, 2, options.join(' '))
  }
  assert.equal((await cli.run([...verify, '3'], fromStdin)).code, 4)
  assert.equal((await cli.run([...verify, '1', '--secret-file', `${file}-none`])).code, 2)
})
