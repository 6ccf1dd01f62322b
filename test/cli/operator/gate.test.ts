import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { createGateStore } from '../../../src/gate/store.ts'
import { isId, isToken } from '../../../src/lib/ids.ts'
import { tokenHash } from '../../../src/secrets/tokens.ts'
import { readConfig } from '../../../src/service/config.ts'
import { type Ran, runCommand } from '../../support/command.ts'
import { pocketWallet, register } from '../../support/gate.ts'
import { startLnurlServer } from '../../support/lnurl-server.ts'
import { startServer, testClock } from '../../support/server.ts'
import { aMigratedDatabaseUrl, openDatabase } from '../../support/store.ts'

test('a project is added, and works on the running server at once', async (t) => {
  const { url, databaseUrl } = await startServer(t, { MAYFLY_GATE: 'on' })
  const { code, out, err } = await gate(databaseUrl, [
    ...['project', 'add', '--address', 'Alice@Example.com'],
    ...['--route', 'render=POST:/render/*:50', '--route', 'ping=GET:/ping:1'],
    ...['--credits', '100', '--json'],
  ])
  assert.deepEqual([code, err], [0, ''])
  const added = JSON.parse(out) as { projectId: string; capability: string; verification: string }
  assert.deepEqual(Object.keys(added), ['projectId', 'capability', 'verification'])
  assert.ok(isId('gate_project', added.projectId))
  assert.ok(isToken('gate_key', added.capability))
  assert.equal(added.verification, 'provider')
  assert.deepEqual(await intentOf(url, added, { route: 'ping', method: 'GET', path: '/ping' }), {
    status: 402,
    recipient: 'alice@example.com',
    amountSats: 1,
  })
})

describe('each command', () => {
  test('each command says in text and in JSON what it did', async (t) => {
    const shop = await aProject(t)
    const { run, projectId } = shop
    const list = await run('project', 'list')
    assert.equal(list.out, `${projectId}  active  3 credits  alice@example.com\n`)
    const [listed] = JSON.parse((await run('project', 'list', '--json')).out) as unknown[]
    const view = {
      projectId,
      address: 'alice@example.com',
      verification: 'provider',
      credits: 3,
      isSuspended: false,
    }
    assert.deepEqual({ ...(listed as object), createdAt: '' }, { ...view, createdAt: '' })

    assert.equal(
      (await run('credits', 'grant', projectId, '7')).out,
      `${projectId} has 10 credits.\n`,
    )
    assert.deepEqual(JSON.parse((await run('credits', 'grant', projectId, '1', '--json')).out), {
      projectId,
      credits: 11,
    })
    assert.deepEqual(
      JSON.parse((await run('route', 'add', projectId, 'all=GET:/all/**:5', '--json')).out),
      { projectId, routeId: 'all', method: 'GET', pattern: '/all/**', priceSats: 5 },
    )
    assert.match((await run('route', 'remove', projectId, 'ping')).out, /no route ping any more/)
    assert.match((await run('project', 'suspend', projectId)).out, /is suspended/)
    const shown = await run('project', 'show', projectId)
    assert.equal(
      shown.out,
      `Project       ${projectId} (suspended)
Address       alice@example.com
Verification  provider
Credits       11
Intents       0 open, 0 authorized
Routes
  all=GET:/all/**:5
`,
    )
    assert.match((await run('project', 'resume', projectId)).out, /is active/)
    const details = JSON.parse((await run('project', 'show', projectId, '--json')).out) as object
    assert.deepEqual(
      { ...details, createdAt: '' },
      {
        ...view,
        credits: 11,
        createdAt: '',
        routes: [{ routeId: 'all', method: 'GET', pattern: '/all/**', priceSats: 5 }],
        openIntents: 0,
        authorizedIntents: 0,
      },
    )
  })

  test('each command tells how the payment will be verified, and shows the capability once', async (t) => {
    const { run, databaseUrl, projectId } = await aProject(t)
    const { out } = await run('project', 'rotate-key', projectId)
    const [, capability = ''] = /^Capability {4}(gate_key_\S+)\n/.exec(out) ?? []
    assert.ok(isToken('gate_key', capability))
    const db = await openDatabase(databaseUrl)
    t.after(() => db.close())
    const project = await createGateStore(db).projectOfKey(tokenHash(capability))
    assert.equal(project?.project_id, projectId)
    assert.equal((await run('project', 'show', projectId)).out.includes('gate_key_'), false)
  })
})

test('a payment that was proven and not honoured is listed, and honoured by a command', async (t) => {
  const server = await startServer(t, { MAYFLY_GATE: 'on' })
  const { pay, databaseUrl } = server
  const sdk = server.mayfly.gate(await register(server))
  assert.equal(
    (await gate(databaseUrl, ['payment', 'list'])).out,
    'Every proven payment was honoured.\n',
  )
  const { intentId, bolt11, paymentHash } = await sdk.intent({
    route: 'ping',
    method: 'GET',
    path: '/ping',
  })
  const preimage = await pay(bolt11)
  const receiptId = async (): Promise<string> => {
    const outcome = await sdk.prove(intentId, preimage)
    return outcome.settled ? outcome.receiptId : ''
  }
  for (let i = 0; i < 2; i++) await sdk.giveBack(intentId, await receiptId())
  const last = await receiptId()
  await assert.rejects(sdk.giveBack(intentId, last), /give-back refused/)

  const [owed] = JSON.parse((await gate(databaseUrl, ['payment', 'list', '--json'])).out) as [
    Record<string, unknown>,
  ]
  assert.deepEqual([owed.intentId, owed.paymentHash, owed.amountSats], [intentId, paymentHash, 1])
  assert.match((await gate(databaseUrl, ['payment', 'list'])).out, new RegExp(paymentHash))
  const honoured = await gate(databaseUrl, ['payment', 'honour', intentId])
  assert.match(honoured.out, /it is let in once more/)
  assert.notEqual(await receiptId(), last)
  assert.equal((await gate(databaseUrl, ['payment', 'list', '--json'])).out, '[]\n')
})

describe('a command that cannot be done', () => {
  const nobody = `gate_project_${'0'.repeat(22)}`
  const cases: { args: string[]; code: number; says: RegExp }[] = [
    { args: ['project'], code: 2, says: /^Usage: mayfly gate project/ },
    { args: ['project', 'remove'], code: 2, says: /unknown command 'remove'/ },
    {
      args: ['project', 'add'],
      code: 2,
      says: /required option '--address <name@domain>' not specified/,
    },
    {
      args: ['project', 'add', '--address', 'a@b.com', '--adress', 'x'],
      code: 2,
      says: /--adress/,
    },
    { args: ['project', 'list', 'x'], code: 2, says: /too many arguments/ },
    { args: ['project', 'list', '--credits', '1'], code: 2, says: /unknown option '--credits'/ },
    { args: ['project', 'show'], code: 2, says: /missing required argument 'project'/ },
    { args: ['project', 'show', 'x'], code: 2, says: /The id of a project is gate_project_/ },
    { args: ['payment', 'honour', 'x'], code: 2, says: /The id of an intent is gate_intent_/ },
    {
      args: ['payment', 'honour', `gate_intent_${'0'.repeat(22)}`],
      code: 4,
      says: /There is no intent/,
    },
    { args: ['credits', 'grant', nobody, '0'], code: 2, says: /whole number from 1/ },
    { args: ['credits', 'grant', nobody, '1.5'], code: 2, says: /whole number from 1/ },
    { args: ['route', 'add', nobody, 'x'], code: 2, says: /A route reads `<id>=<method>/ },
    { args: ['route', 'add', nobody, 'x=GET:/a//b:1'], code: 2, says: /The path of route x/ },
    { args: ['project', 'show', nobody], code: 4, says: /There is no project gate_project_0/ },
    { args: ['project', 'suspend', nobody], code: 4, says: /There is no project/ },
    { args: ['project', 'resume', nobody], code: 4, says: /There is no project/ },
    { args: ['project', 'rotate-key', nobody], code: 4, says: /There is no project/ },
    { args: ['credits', 'grant', nobody, '1'], code: 4, says: /There is no project/ },
    { args: ['route', 'add', nobody, 'x=GET:/a:1'], code: 4, says: /There is no project/ },
    { args: ['route', 'remove', nobody, 'x'], code: 4, says: /There is no project/ },
    {
      args: ['project', 'add', '--address', 'alice@localhost'],
      code: 1,
      says: /The address cannot be used: the domain .* must be a public name/,
    },
    {
      args: [
        ...['project', 'add', '--address', 'alice@example.com'],
        ...['--route', 'x=GET:/a:1', '--route', 'x=GET:/b:1'],
      ],
      code: 1,
      says: /The route x is there twice/,
    },
  ]
  test('a command that cannot be done says why on stderr: with 2 for a wrong command, 4 for what is not there and 1 for a refusal', async (t) => {
    const databaseUrl = await aMigratedDatabaseUrl(t)
    for (const { args, code, says } of cases) {
      const ended = await gate(databaseUrl, args)
      assert.match(ended.err, says, args.join(' '))
      assert.deepEqual([ended.code, ended.out], [code, ''], args.join(' '))
    }
  })

  test('a command that cannot be done changes nothing: a second route of the same id, a suspension of what is suspended', async (t) => {
    const { run, projectId } = await aProject(t)
    const again = await run('route', 'add', projectId, 'ping=GET:/other:9')
    assert.match(again.err, /has a route ping\. Remove it first/)
    assert.equal((await run('route', 'remove', projectId, 'other')).code, 1)
    assert.equal((await run('project', 'resume', projectId)).code, 1)
    assert.equal((await run('project', 'suspend', projectId)).code, 0)
    assert.match((await run('project', 'suspend', projectId)).err, /was suspended before/)
    assert.match((await run('credits', 'grant', projectId, '1000000000')).err, /more than/)
    assert.match((await run('project', 'show', projectId)).out, /Credits {7}3\n/)
  })

  test('a bad list of allowed hosts is explained', () => {
    for (const hosts of ['localhost', 'a:b', 'http://a:1', 'a:1,', 'a:99999', 'a:1/x', 'u@a:1']) {
      assert.throws(() => readConfig({ MAYFLY_ALLOWED_HOSTS: hosts }), {
        name: 'ConfigError',
        message: 'MAYFLY_ALLOWED_HOSTS must be a comma-separated list of `host:port`.',
      })
    }
    const { allowedHosts } = readConfig({ MAYFLY_ALLOWED_HOSTS: '127.0.0.1:80, [::1]:9' })
    assert.deepEqual([...allowedHosts], ['127.0.0.1:80', '[::1]:9'])
  })
})

describe('an address with a provider of its own', () => {
  // A store that has met its node: the command itself asks none.
  const lnd = (host: string) => ({
    MAYFLY_LIGHTNING_URL: 'lnd+https://127.0.0.1:1?macaroon=/nowhere&cert=/nowhere',
    MAYFLY_NETWORK: 'regtest',
    MAYFLY_ALLOWED_HOSTS: host,
  })
  const add = (address: string, ...rest: string[]) => [
    ...['project', 'add', '--address', address, '--route', 'a=GET:/a:50', '--json'],
    ...rest,
  ]

  test('an address with a provider is asked when it is saved: who verifies, and whether it takes the prices', async (t) => {
    const databaseUrl = await aMigratedDatabaseUrl(t)
    const lnurl = await startLnurlServer(t, pocketWallet(testClock()))
    const withVerify = await gate(databaseUrl, add(lnurl.address), lnd(lnurl.host))
    assert.equal((JSON.parse(withVerify.out) as { verification: string }).verification, 'provider')

    lnurl.answers.invoice = async (_url, _response, usual) => ({
      ...(await usual()),
      verify: undefined,
    })
    const without = await gate(databaseUrl, add(lnurl.address), lnd(lnurl.host))
    assert.equal((JSON.parse(without.out) as { verification: string }).verification, 'preimage')

    const tooDear = await gate(
      databaseUrl,
      add(lnurl.address, '--route', 'b=GET:/b:1000001'),
      lnd(lnurl.host),
    )
    assert.equal(tooDear.code, 1)
    assert.match(tooDear.err, /takes 1 to 1000000 sat, and 1000001 sat is outside/)
  })

  test('an address is refused with what its provider says, and nothing is saved', async (t) => {
    const databaseUrl = await aMigratedDatabaseUrl(t)
    const lnurl = await startLnurlServer(t, pocketWallet(testClock()))
    lnurl.answers.pay = () => ({ status: 'ERROR', reason: 'no such user' })
    const refused = await gate(databaseUrl, add(lnurl.address), lnd(lnurl.host))
    assert.equal(refused.err, 'The address cannot be used: the provider refused: no such user.\n')
    assert.equal(refused.code, 1)
    const list = await gate(databaseUrl, ['project', 'list'], lnd(lnurl.host))
    assert.equal(list.out, 'There are no projects.\n')
  })

  test('a provider is not looked for at a private address', async (t) => {
    const databaseUrl = await aMigratedDatabaseUrl(t)
    const lnurl = await startLnurlServer(t, pocketWallet(testClock()))
    const refused = await gate(databaseUrl, add(lnurl.address), lnd('127.0.0.1:9'))
    assert.match(refused.err, /must be a public name/)
    assert.equal(lnurl.requests.length, 0)
  })

  test('an address with a provider needs a store that knows its network', async (t) => {
    const databaseUrl = await aMigratedDatabaseUrl(t)
    const { MAYFLY_NETWORK: _unset, ...rest } = lnd('127.0.0.1:9')
    const refused = await gate(databaseUrl, add('alice@example.com'), rest)
    assert.equal(refused.code, 2)
    assert.match(refused.err, /first start on a new store needs the Lightning node/)
  })
})

test('a group without a command is a mistake that lists its commands, but --help is not', async (t) => {
  const databaseUrl = await aMigratedDatabaseUrl(t)
  const alone = await gate(databaseUrl, [])
  assert.deepEqual([alone.code, alone.out], [2, ''])
  assert.match(alone.err, /^Usage: mayfly gate [\s\S]+ project [\s\S]+ payment /)
  const help = await gate(databaseUrl, ['project', 'add', '--help'])
  assert.deepEqual([help.code, help.err], [0, ''])
  assert.match(help.out, /^Usage: mayfly gate project add [\s\S]+--address/)
})

test('a command says that GATE is switched off', async (t) => {
  const databaseUrl = await aMigratedDatabaseUrl(t)
  const { code, err } = await gate(databaseUrl, ['project', 'list'], { MAYFLY_GATE: 'off' })
  assert.equal(code, 0)
  assert.match(err, /MAYFLY_GATE is off here/)
})

/** `mayfly gate …` on this store, in a process of its own. */
const gate = (
  databaseUrl: string,
  args: string[],
  environment: Record<string, string> = {},
): Promise<Ran> =>
  runCommand(['gate', ...args], {
    MAYFLY_DATABASE_URL: databaseUrl,
    MAYFLY_GATE: 'on',
    ...environment,
  })

async function aProject(t: TestContext) {
  const databaseUrl = await aMigratedDatabaseUrl(t)
  const added = await gate(databaseUrl, [
    ...['project', 'add', '--address', 'alice@example.com', '--route', 'ping=GET:/ping:1'],
    ...['--credits', '3', '--json'],
  ])
  const { projectId, capability } = JSON.parse(added.out) as {
    projectId: string
    capability: string
  }
  return { databaseUrl, projectId, capability, run: (...args: string[]) => gate(databaseUrl, args) }
}

async function intentOf(
  url: string,
  { projectId, capability }: { projectId: string; capability: string },
  { route, method, path }: { route: string; method: string; path: string },
) {
  const response = await fetch(`${url}/api/gate/intents`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${capability}`,
      'idempotency-key': crypto.randomUUID(),
      'x-gate-project': projectId,
      'x-gate-route': route,
      'x-gate-method': method,
      'x-gate-path': path,
    },
  })
  const { recipient, amountSats } = (await response.json()) as Record<string, unknown>
  return { status: response.status, recipient, amountSats }
}
