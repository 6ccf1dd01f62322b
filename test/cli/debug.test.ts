import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { shownAddress } from '../../src/cli/trace.ts'
import { commandLine, WITH_WALLET } from '../support/command-line.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { freePort } from '../support/ports.ts'
import { startServer } from '../support/server.ts'
import { answerWith, passOn, serve } from '../support/serving.ts'
import { aUser } from '../support/user.ts'
import { savedTexts } from '../support/vault.ts'

type Seen = { headers: IncomingHttpHeaders; sent: string; answered: string }

test('--debug tells the requests of whole purchases, and none of the secrets that they made', async (t) => {
  const { url } = await startServer(t)
  const proxy = await aRecorder(t, url)
  const cli = await commandLine(t, proxy.url)
  const secret = join(await temporaryFolder(t), 'secret')
  writeFileSync(secret, 'the launch is at noon')
  const commands = [
    ['buy', 'catch', '--name', 'hooks'],
    ['buy', 'pulse', '--name', 'backup'],
    ['whisper', 'send', secret, '--name', 'launch', '--receipt', '--reads', '1'],
    ['extend', 'hooks'],
    ['status', 'hooks'],
    ['pulse', 'ping', 'backup'],
    ['pulse', 'rotate', 'backup'],
    ['pulse', '--debug', 'run', 'backup', '--', 'true'],
    ['status', 'launch'],
    ['whisper', 'read', 'launch', '--yes'],
    ['whisper', 'read', 'launch', '--yes'],
    ['catch', 'events', 'hooks', '--filter', 'q=a-secret-word'],
  ]
  let told = ''
  for (const args of commands) {
    const isRun = args[2] === 'run'
    const ended = await cli.run(isRun ? args : [...args, '--debug'], WITH_WALLET)
    assert.match(ended.err, /^debug: (?:GET|POST) http:\S+: \d{3} in \d+ ms/m, args.join(' '))
    told += ended.err
  }
  assert.match(told, /debug: POST \S+\/api\/payments\/catch: 402 in/)
  assert.match(told, /debug: failed: MayflyError/)
  const secrets = secretsOf(proxy.seen, savedTexts(cli.folder))
  // Two tokens of each, a code, five keys and as many preimages, at least.
  assert.equal(secrets.size >= 15, true, `${secrets.size} secrets`)
  for (const each of secrets) assert.equal(told.includes(each), false, each)
  assert.doesNotMatch(told, /[0-9a-f]{64}|a-secret-word|lnbc/)
})

test('--debug names causes, and no credential of a wallet', async (t) => {
  const { cli } = await aUser(t)
  const wallet = `phoenixd+http://:hunter2hunter2@127.0.0.1:${await freePort()}`
  const { code, err } = await cli.run(['buy', 'catch', '--debug'], {
    environment: { MAYFLY_WALLET_URL: wallet },
  })
  assert.equal(code, 3)
  assert.match(err, /debug: GET http:\S+\/payments\/outgoingbyhash\/…: TypeError, caused by/)
  assert.match(err, /debug: failed: CliError, caused by MayflyError, caused by WalletError/)
  assert.match(err, /could not be asked \(connection refused\)\. Nothing was paid\./)
  assert.doesNotMatch(err, /hunter2/)
})

test('an address is shown without what could be a secret in it', () => {
  for (const [url, shown] of [
    ['http://a.example/api/catalog', 'http://a.example/api/catalog'],
    ['http://u:p@a.example:81/api/catch/catch_2mQx7R', 'http://a.example:81/api/catch/catch_…'],
    ['http://a.example/x?after=7&q=word', 'http://a.example/x?after=7&q=…'],
    ['http://a.example/v2/router/track/5e8f', 'http://a.example/v2/router/track/…'],
    ['http://a.example/Hunter2', 'http://a.example/…'],
    ['http://a.example/abcdefghijklmnopqrstuvwxyz', 'http://a.example/…'],
    ['http://a.example/badge.svg#x', 'http://a.example/badge.svg'],
    ['nonsense', '(an address)'],
  ] as const) {
    assert.equal(shownAddress(url), shown)
  }
})

test('--quiet leaves answers and errors, and no word of what goes on', async (t) => {
  const { cli } = await aUser(t)
  const bought = await cli.run(['buy', 'catch', '--name', 'hooks', '--quiet'], WITH_WALLET)
  assert.deepEqual([bought.code, bought.err], [0, ''])
  assert.match(bought.out, /"name":"hooks"/)
  const late = await cli.run(['catch', 'listen', 'hooks', '--once', '--timeout', '1', '--quiet'])
  assert.deepEqual([late.code, late.out, late.err], [1, '', 'No webhook arrived within 1 s.\n'])
  const gone = await cli.run(['--quiet', 'show', 'nothing'])
  assert.deepEqual([gone.code, gone.out], [4, ''])
  assert.match(gone.err, /^Nothing is saved as nothing\./)
})

/** Every token, code, key, proof and preimage, from what was sent, what was answered, and what is saved. */
function secretsOf(seen: Seen[], saved: string[]): Set<string> {
  const secrets = new Set<string>()
  const collect = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    for (const [name, inner] of Object.entries(value)) {
      if (typeof inner === 'string' && /token|code|preimage|macaroon|key$/i.test(name)) {
        secrets.add(inner)
      } else collect(inner)
    }
  }
  const parse = (text: string): void => {
    try {
      collect(JSON.parse(text))
    } catch {
      // Not JSON: an encrypted whisper.
    }
  }
  for (const { headers, sent, answered } of seen) {
    const { authorization, 'idempotency-key': key, 'payment-preimage': proof } = headers
    for (const one of [authorization?.replace(/^\S+ /, ''), key, proof]) {
      if (typeof one === 'string') secrets.add(one)
    }
    parse(sent)
    parse(answered)
  }
  saved.forEach(parse)
  return new Set([...secrets].filter((one) => one.length > 15))
}

/** Passes everything on to the service, and keeps it. */
async function aRecorder(t: After, target: string): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = []
  const url = await serve(t, async (request, response) => {
    const passed = await passOn(target, request)
    const [sent, answered] = [passed.sent.toString('utf8'), passed.answered.toString('utf8')]
    seen.push({ headers: request.headers, sent, answered })
    answerWith(response, passed)
  })
  return { url, seen }
}
