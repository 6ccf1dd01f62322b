/** Services that lie get nothing from a wallet, whoever asks: the same lies as in test/client/purchase-faults.test.ts. */
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { openPurchases } from '../../src/cli/vault/purchases.ts'
import { vaultFile } from '../../src/cli/vault/vault.ts'
import { commandLine, WITH_WALLET } from '../support/command-line.ts'
import type { After } from '../support/folder.ts'
import { LIES, lyingService } from '../support/lies.ts'
import { aHost } from '../support/mcp-host.ts'
import { paidInvoices } from '../support/mcp-money.ts'
import { startServer } from '../support/server.ts'
import { between } from '../support/serving.ts'

const environment = { ...WITH_WALLET.environment, MAYFLY_MAX_SATS: '500' }

test('neither the command line nor the tools of a host pay a lying service, or keep anything of it', async (t) => {
  const server = await startServer(t)
  const service = await lyingService(t, server.url)
  const cli = await commandLine(t, service.url)
  const lying = { server: { ...server, url: service.url }, home: dirname(cli.folder) }
  const { host } = await aHost(t, { ...lying, environment, answers: ['accept'] })
  for (const [name, lie] of Object.entries(LIES)) {
    service.lie = lie
    const { code, err, out } = await cli.run(['buy', 'catch'], { environment })
    assert.notEqual(code, 0, name)
    assert.doesNotMatch(err, /Paying/, name)
    assert.equal(out, '', name)
    const refused = await host.call('buy_inbox', { planId: 'spark', name: 'hooks' })
    assert.equal(refused.isError, true, name)
  }
  assert.deepEqual(openPurchases(cli), [])
  assert.equal(await paidInvoices(server), 0)
  assert.equal((await cli.json(['budget'])).spentMsat, 0)
  service.lie = null
  await cli.json(['buy', 'catch'], { environment })
  assert.equal(await paidInvoices(server), 1)
})

test('a service whose catalogue says that a whisper is huge fills no disk', async (t) => {
  const server = await startServer(t)
  const url = await catalogueOf(t, server.url, (plan) => {
    if ('maxCiphertextBytes' in plan) plan.maxCiphertextBytes = 200_000_000
  })
  const cli = await commandLine(t, url)
  await cli.json(['whisper', 'send', '--name', 'w'], { ...WITH_WALLET, input: 'x' })
  assert.equal((await cli.run(['whisper', 'read', 'w'])).out, 'x')
  assert.ok(statSync(vaultFile(cli.folder)).size < 70_000_000)
})

test('an inbox whose answer never ends, or leads elsewhere, keeps no trigger', async (t) => {
  const server = await startServer(t)
  let elsewhere = 0
  const url = await between(t, server.url, (path, response) => {
    if (path === '/elsewhere') elsewhere++
    if (!path.startsWith('/c/')) return false
    if (isEndless) Readable.from(endless()).pipe(response)
    else response.writeHead(307, { location: '/elsewhere' }).end()
    return true
  })
  let isEndless = true
  const cli = await commandLine(t, url)
  await cli.json(['buy', 'catch', '--name', 'hooks'], WITH_WALLET)
  const { answer } = await cli.json(['catch', 'trigger', 'hooks'])
  assert.equal(String(answer).length, 4096)
  isEndless = false
  assert.equal((await cli.run(['catch', 'trigger', 'hooks'])).code, 1)
  assert.equal(elsewhere, 0)
})

function* endless() {
  for (;;) yield 'more'.repeat(256)
}

test('a catalogue whose price is a text asks the user nothing', async (t) => {
  const server = await startServer(t)
  const url = await catalogueOf(t, server.url, (plan) => {
    plan.priceSats = '1 sat, which the shop pays back'
  })
  const { host, questions } = await aHost(t, {
    server: { ...server, url },
    environment,
    answers: ['accept'],
  })
  const refused = await host.call('buy_inbox', { planId: 'spark', name: 'hooks' })
  assert.equal(refused.isError, true)
  assert.match(refused.text, /not on sale now\. Nothing was paid/)
  assert.deepEqual(questions, [])
})

test('an answer of another shape is told in one sentence, and hides nothing of other services', async (t) => {
  const server = await startServer(t)
  let isStrange = false
  const url = await between(t, server.url, (path, response) => {
    if (!isStrange || !path.startsWith('/api/')) return false
    const headers = { 'content-type': 'application/json' }
    response.writeHead(200, headers).end(JSON.stringify(STRANGE))
    return true
  })
  const cli = await commandLine(t, url)
  await cli.json(['buy', 'catch', '--name', 'strange'], WITH_WALLET)
  const good = { environment: { ...environment, MAYFLY_URL: server.url } }
  await cli.json(['buy', 'catch', '--name', 'good'], good)
  isStrange = true
  const says = new RegExp(`^${url} answers what this version cannot read`)
  for (const command of ['catalog', 'status strange']) {
    const { code, err, out } = await cli.run([...command.split(' '), '--json'])
    const { error } = JSON.parse(out)
    assert.match(error, says, command)
    assert.deepEqual([code, err], [1, `${error}\n`], command)
  }
  const { code, out } = await cli.run(['list', '--check', '--json'])
  const [first, second] = JSON.parse(out)
  assert.deepEqual([code, first.name, first.state, second.name], [5, 'good', 'active', 'strange'])
  assert.match(second.problem, says)
})

/** Has every member that is asked for, and none as it is. */
const STRANGE = {
  checkoutEnabled: true,
  products: {},
  status: {},
  expiresAt: [],
  total: 1,
  reasons: 1,
}

type Plan = Record<string, unknown>

/** A service whose catalogue is another one than it sells by: each plan is changed. */
async function catalogueOf(
  t: After,
  upstream: string,
  change: (plan: Plan) => void,
): Promise<string> {
  const catalogue = await (await fetch(`${upstream}/api/catalog`)).json()
  const { products } = catalogue as { products: Record<string, { plans: Plan[] }> }
  for (const plan of Object.values(products).flatMap(({ plans }) => plans)) change(plan)
  return between(t, upstream, (path, response) => {
    if (path !== '/api/catalog') return false
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(catalogue))
    return true
  })
}
