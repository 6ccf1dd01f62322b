import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { createGateStore } from '../../../src/gate/store.ts'
import { isId, isToken } from '../../../src/lib/ids.ts'
import { tokenHash } from '../../../src/secrets/tokens.ts'
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

test('a command that cannot be done says why on stderr: with 2 for a wrong command, 4 for what is not there and 1 for a refusal', async (t) => {
  const nobody = `gate_project_${'0'.repeat(22)}`
  const alice = '--address alice@example.com'
  const databaseUrl = await aMigratedDatabaseUrl(t)
  for (const [command, code, says] of [
    ['', 2, /^Usage: mayfly gate [\s\S]+ project [\s\S]+ payment /],
    ['project', 2, /^Usage: mayfly gate project/],
    ['project remove', 2, /unknown command 'remove'/],
    ['project add', 2, /required option '--address <name@domain>' not specified/],
    ['project add --address a@b.com --adress x', 2, /--adress/],
    ['project list x', 2, /too many arguments/],
    ['project list --credits 1', 2, /unknown option '--credits'/],
    ['project show', 2, /missing required argument 'project'/],
    ['project show x', 2, /The id of a project is gate_project_/],
    ['payment honour x', 2, /The id of an intent is gate_intent_/],
    [`payment honour gate_intent_${'0'.repeat(22)}`, 4, /There is no intent/],
    [`credits grant ${nobody} 0`, 2, /whole number from 1/],
    [`credits grant ${nobody} 1.5`, 2, /whole number from 1/],
    [`route add ${nobody} x`, 2, /A route reads `<id>=<method>/],
    [`route add ${nobody} x=GET:/a//b:1`, 2, /The path of route x/],
    [`project show ${nobody}`, 4, /There is no project gate_project_0/],
    [
      'project add --address alice@localhost',
      1,
      /The address cannot be used: the domain .* public/,
    ],
    [`project add ${alice} --route x=GET:/a:1 --route x=GET:/b:1`, 1, /The route x is there twice/],
  ] as const) {
    const ended = await gate(databaseUrl, command === '' ? [] : command.split(' '))
    assert.match(ended.err, says, command)
    assert.deepEqual([ended.code, ended.out], [code, ''], command)
  }
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
