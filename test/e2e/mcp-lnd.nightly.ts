/** An agent that buys and extends through `mayfly mcp`, from a real LND with another one as the wallet. `/mcp` pays nothing. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { budgetState } from '../../src/cli/vault/budget.ts'
import { lndWallet } from '../../src/client/wallets/lnd.ts'
import { temporaryFolder } from '../support/folder.ts'
import { connectHost } from '../support/mcp-host.ts'
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

  test('every payment that the node ever received has bought something', () => nodes.books.close())
})

function laterThan(expiresAt: string, value: unknown): boolean {
  const { extended } = (value ?? {}) as { extended?: { expiresAt: string } }
  return Date.parse(extended?.expiresAt ?? '') > Date.parse(expiresAt)
}
