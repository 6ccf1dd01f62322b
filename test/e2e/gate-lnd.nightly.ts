/** GATE with real money on regtest: bob has the API and the address, alice pays, Mayfly is alice's. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startPaidApi } from '../../examples/paid-api.ts'
import type { GateQuote } from '../../src/client/index.ts'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import { BIN, ENVIRONMENT } from '../support/bin.ts'
import { type LnurlServer, startLnurlServer, type Wallet } from '../support/lnurl-server.ts'
import { string } from '../support/nodes/json.ts'
import type { LndNode } from '../support/nodes/lnd-node.ts'
import { missingNodes, type Testbed } from '../support/nodes/testbed.ts'
import { startServer } from '../support/server.ts'
import { settingsFor } from '../support/store.ts'
import { until } from '../support/until.ts'
import { sellingOver } from './lnd-market.ts'
import { shareNodes } from './shared-nodes.ts'

const run = promisify(execFile)
const VERIFIER = fileURLToPath(new URL('./verify-receipt.ts', import.meta.url))

describe('GATE over LND', { skip: await missingNodes() }, () => {
  const nodes = shareNodes()

  test('the API answers a client who has paid bob, and anybody can verify the receipt', async (t) => {
    const { url, api, project, balance } = await aMarket(t, nodes.testbed)
    const before = await balance()
    const refused = await fetch(`${api}/render/cat?size=2`, { method: 'POST', body: 'a' })
    const quote = (await refused.json()) as GateQuote
    assert.equal(refused.status, 402)
    assert.equal(decodeInvoice(quote.bolt11).amountMsat, 50_000)

    const preimage = await nodes.testbed.alice.pay(quote.bolt11)
    const answer = await fetch(`${api}/render/cat?size=2`, {
      method: 'POST',
      body: 'a',
      headers: { 'x-gate-intent': quote.intentId, 'x-gate-preimage': preimage },
    })
    assert.deepEqual(await answer.json(), { rendered: '/render/cat?size=2', sats: 50 })
    await until('bob to have the money', async () => (await balance()) - before === 50)

    const receipt = answer.headers.get('gate-receipt') ?? ''
    const { stdout } = await run(process.execPath, [VERIFIER, receipt, url, project.projectId])
    const claims = JSON.parse(stdout) as Record<string, unknown>
    assert.equal(claims.ph, quote.paymentHash)
    assert.equal(claims.htp, '/render/cat?size=2')
    assert.equal(claims.req, quote.requestDigest)
    assert.equal(claims.by, 'preimage')
    assert.equal(claims.sat, 50)
  })
})

/** Bob's address and API, registered with a Mayfly on alice's node by the operator's command. */
async function aMarket(t: TestContext, { alice, bob }: Testbed) {
  const lnurl: LnurlServer = await startLnurlServer(t, lndWallet(bob))
  const environment = {
    ...(await sellingOver(t, alice)),
    MAYFLY_GATE: 'on',
    MAYFLY_ALLOWED_HOSTS: lnurl.host,
  }
  const server = await startServer(t, environment)
  const { stdout } = await run(
    process.execPath,
    [
      ...[BIN, 'gate', 'project', 'add', '--address', lnurl.address],
      ...['--route', 'render=POST:/render/*:50', '--credits', '5', '--json'],
    ],
    {
      env: {
        ...ENVIRONMENT,
        ...environment,
        ...settingsFor(server.databaseUrl),
      },
    },
  )
  const project = JSON.parse(stdout) as { projectId: string; capability: string }
  const { url } = server
  const api = await startPaidApi({ url, ...project })
  t.after(() => api.server.close())
  const balance = async (): Promise<number> =>
    Number((await bob.get('/v1/balance/channels')).balance)
  return { server, url, lnurl, api: api.url, project, balance }
}

function lndWallet(node: LndNode): Wallet {
  return {
    async createInvoice(amountMsat) {
      const { payment_request } = await node.post('/v1/invoices', {
        value_msat: String(amountMsat),
        memo: 'A picture',
        expiry: '600',
      })
      return string(payment_request)
    },
    async lookUp(paymentHash) {
      const { state, r_preimage } = await node.get(`/v1/invoice/${paymentHash}`)
      const preimage = Buffer.from(string(r_preimage), 'base64').toString('hex')
      return { isSettled: state === 'SETTLED', preimage }
    },
    paymentHashOf: (bolt11) => decodeInvoice(bolt11).paymentHash,
  }
}
