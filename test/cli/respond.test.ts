import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { SAMPLES, sampleOf } from '../../src/cli/catch/trigger.ts'
import { guessProvider, verifySignature } from '../../src/client/index.ts'
import { WITH_WALLET } from '../support/command-line.ts'
import { temporaryFolder } from '../support/folder.ts'
import { aUser } from '../support/user.ts'

test('catch respond sets an inbox up for a sender, and shows and resets what was chosen', async (t) => {
  const { cli } = await aUser(t)
  const { ingestUrl } = await cli.json(['buy', 'catch', '--name', 'hooks'], WITH_WALLET)
  const respond = (...options: string[]) => cli.json(['catch', 'respond', 'hooks', ...options])
  const ask = async (query: string, body: object = {}) => {
    const request = { method: 'POST', body: JSON.stringify(body) }
    return (await fetch(`${ingestUrl}${query}`, request)).text()
  }
  assert.deepEqual((await respond()).response, { status: 204 })
  await respond('--for', 'slack')
  assert.equal(await ask('', { challenge: 'abc' }), 'abc')
  await respond('--for', 'microsoft-graph')
  assert.equal(await ask('?validationToken=a+b'), 'a b')
  await respond('--echo-query', 'token')
  assert.equal(await ask('?token=abc'), 'abc')
  await respond('--echo-json', 'token')
  assert.equal(await ask('', { token: 'abc' }), 'abc')
  const file = join(await temporaryFolder(t), 'secret')
  await writeFile(file, 'shh\n')
  const zoom = await respond('--for', 'zoom', '--secret-file', file)
  assert.deepEqual(zoom.response, { hmac: { provider: 'zoom' } })
  const challenge = { event: 'endpoint.url_validation', payload: { plainToken: 'abc' } }
  assert.match(await ask('', challenge), /"encryptedToken":"[0-9a-f]{64}"/)
  const fixed = { status: 429, contentType: 'application/json', body: '[1]', retryAfterSeconds: 60 }
  const shown = await respond(
    ...['--status', '429', '--content-type', 'application/json'],
    ...['--body', '[1]', '--retry-after', '60'],
  )
  assert.deepEqual(shown.response, fixed)
  assert.deepEqual((await respond()).response, fixed)
  assert.deepEqual((await respond('--reset')).response, { status: 204 })

  for (const options of [
    ['--for', 'github'],
    ['--for', 'slack', '--status', '200'],
    ['--status', '500'],
    ['--status', '200', '--content-type', 'text/html'],
    ['--body', 'x'],
    ['--retry-after', '5', '--reset'],
    ['--secret-file', file],
  ]) {
    const { code } = await cli.run(['catch', 'respond', 'hooks', ...options])
    assert.equal(code, 2, options.join(' '))
  }
  const refused = await cli.run(['catch', 'respond', 'hooks', '--status', '302'])
  assert.notEqual(refused.code, 0)
  assert.match(refused.err, /200, 201, 202, 204/)
})

test('catch trigger sends what each sender would sign, with a secret that is given or made and shown', async (t) => {
  const { cli } = await aUser(t, { hooks: 'catch' })
  const trigger = (...options: string[]) => cli.run(['catch', 'trigger', 'hooks', ...options])
  const last = async () => {
    const { code, out } = await cli.run(['catch', 'show', 'hooks', '--json'])
    assert.equal(code, 0)
    return JSON.parse(out)
  }
  for (const sender of Object.keys(SAMPLES)) {
    const sent = await trigger('--as', sender)
    assert.equal(sent.code, 0, sender)
    const { secret } = JSON.parse(sent.out)
    const event = await last()
    const provider = guessProvider(event)
    assert.equal(provider, sender === 'standard' ? 'standard-webhooks' : sender)
    const verdict = await verifySignature(event, { provider: provider ?? 'github', secret })
    assert.ok(verdict.valid, verdict.sentence)
    assert.equal(event.access, 'public')
  }
  const file = join(await temporaryFolder(t), 'secret')
  await writeFile(file, 'given\n')
  const given = await trigger('--as', 'github', '--secret-file', file, '--data', '{"own":1}')
  assert.doesNotMatch(given.out + given.err, /given|secret/)
  const event = await last()
  assert.equal(event.body, '{"own":1}')
  const lone = await trigger('--secret-file', file)
  assert.deepEqual([lone.code, lone.err], [2, '--secret-file goes with --as, which is missing.\n'])
  assert.ok((await verifySignature(event, { provider: 'github', secret: 'given' })).valid)
  await assert.rejects(
    sampleOf('standard', { secret: 'no base64!', now: 0 }),
    /no secret of standard/,
  )

  await cli.json(['catch', 'respond', 'hooks', '--status', '429', '--body', 'slow down'])
  const answered = await trigger('--data', '{"n":1}')
  assert.deepEqual([answered.code, JSON.parse(answered.out).answer], [1, 'slow down'])
  const own = await last()
  assert.deepEqual([own.access, own.body, own.method], ['authenticated', '{"n":1}', 'POST'])
})
