/** Agents that buy and extend through `mayfly mcp` and at `/mcp`, from a real LND with another one as the wallet. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { budgetState } from '../../src/cli/vault/budget.ts'
import type { CatchCapability } from '../../src/client/index.ts'
import { lndWallet } from '../../src/client/wallets/lnd.ts'
import { temporaryFolder } from '../support/folder.ts'
import {
  capabilityIn,
  challengeIn,
  connect,
  credentialOf,
  purchaseIn,
  REVISIONS,
  type Result,
} from '../support/mcp.ts'
import { connectHost } from '../support/mcp-host.ts'
import { mppxClient } from '../support/mppx.ts'
import { missingNodes } from '../support/nodes/testbed.ts'
import { startServer } from '../support/server.ts'
import { PAYING_MACAROON } from '../support/wallet-recipes.ts'
import { sellingOver } from './lnd-market.ts'
import { shareNodes } from './shared-nodes.ts'

describe('agents and LND', { skip: await missingNodes() }, () => {
  const nodes = shareNodes()

  test('a host buys every product from LND once, extends it, and the budget has the fees that LND might have taken', async (t) => {
    const { alice, bob } = nodes.testbed
    const server = await startServer(t, await sellingOver(t, alice))
    const home = await temporaryFolder(t)
    const macaroon = join(home, 'bob.macaroon')
    writeFileSync(macaroon, await bob.bake(...PAYING_MACAROON))
    const files = new URLSearchParams({ macaroon, cert: bob.certificateFile })
    const environment = { MAYFLY_WALLET_URL: `lnd+${bob.baseUrl}?${files}` }
    const answer = () => 'accept' as const
    const host = await connectHost(t, { home, url: server.url, environment, answer })
    const asked = { planId: 'spark', name: 'hooks' }
    const repeats = await Promise.all([1, 2, 3].map(() => host.call('buy_inbox', asked)))
    for (const { value, text } of repeats) assert.equal(value.state, 'settled', text)
    const monitor = await host.call('buy_monitor', { planId: 'spark', name: 'job' })
    assert.equal(monitor.value.state, 'settled', monitor.text)
    const secret = { planId: 'spark', name: 'door', text: 'mellon' }
    assert.equal((await host.call('send_whisper', secret)).value.state, 'settled')
    for (const [name, { value }] of [
      ['hooks', repeats[0] ?? monitor],
      ['job', monitor],
    ] as const) {
      const { expiresAt } = value.bought as { expiresAt: string }
      const given = { name, expiresAt }
      const ends = await Promise.all([1, 2, 3].map(() => host.call('extend', given)))
      for (const { value, text } of ends) assert.ok(laterThan(expiresAt, value), text)
    }
    const { products } = await server.mayfly.catalog()
    const { catch: inboxes, pulse, whisper } = products
    const prices = [inboxes, inboxes, pulse, pulse, whisper].map(
      ({ plans }) => plans[0]?.priceSats ?? 0,
    )
    const { spentMsat } = budgetState({ folder: join(home, 'mayfly'), now: Date.now })
    const { maxFeeMsat = () => 0 } = lndWallet({ url: bob.baseUrl, macaroonHex: '00' })
    const costs = prices.map((sats) => sats * 1000 + maxFeeMsat(sats * 1000))
    // A day's budget only grows: what was reserved for fees stays counted.
    assert.equal(
      spentMsat,
      costs.reduce((sum, msat) => sum + msat, 0),
    )
    assert.equal(host.transcript().includes(macaroon), false)
    await nodes.books.balance(server)
  })

  for (const revision of REVISIONS) {
    test(`a client of ${revision} buys and extends at /mcp from LND, and its repeats pay nothing`, async (t) => {
      const { alice, pay } = nodes.testbed
      const server = await startServer(t, await sellingOver(t, alice))
      const agent = await connect(t, server.url, { revision })
      const buy = async (name: string, given: object, token?: string) => {
        const shown = token === undefined ? {} : { token }
        const asked = await agent.call(name, given, shown)
        const { purchaseId, quote } = purchaseIn(asked)
        const meta = credentialOf(challengeIn(asked), await pay(quote.bolt11))
        const results = await Promise.all(
          [1, 2, 3].map(() => agent.call(name, { ...given, purchaseId }, { meta })),
        )
        assert.equal(new Set(results.map(({ content }) => content[0]?.text)).size, 1)
        return results[0] as Result
      }
      const inbox = capabilityIn<CatchCapability>(await buy('buy_inbox', { planId: 'spark' }))
      const { publicId, ownerToken, expiresAt } = inbox
      const done = await buy('extend', { publicId, planId: 'spark' }, ownerToken)
      assert.ok(laterThan(expiresAt, done.structuredContent))
      await nodes.books.balance(server)
    })
  }

  test('mppx buys and extends at /mcp, and pays LND by itself', async (t) => {
    const { alice, pay } = nodes.testbed
    const server = await startServer(t, await sellingOver(t, alice))
    const payer = await mppxClient(t, `${server.url}/mcp?tokens=meta`, pay)
    const asked = { name: 'buy_inbox', arguments: { planId: 'spark' } }
    const inbox = capabilityIn<CatchCapability>((await payer.callTool(asked)) as Result)
    const { publicId, ownerToken, expiresAt } = inbox
    const done = await payer.callTool({
      name: 'extend',
      arguments: { publicId, planId: 'spark' },
      _meta: { 'org.mayfly/token': ownerToken },
    })
    assert.ok(laterThan(expiresAt, done.structuredContent))
    await nodes.books.balance(server)
  })

  test('every payment that the node ever received has bought something', () => nodes.books.close())
})

function laterThan(expiresAt: string, value: unknown): boolean {
  const { extended } = (value ?? {}) as { extended?: { expiresAt: string } }
  return Date.parse(extended?.expiresAt ?? '') > Date.parse(expiresAt)
}
