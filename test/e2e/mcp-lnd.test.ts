/** An agent's host that buys through `mayfly mcp`, from a real LND with another one as the wallet. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { budgetState } from '../../src/cli/budget.ts'
import { temporaryFolder } from '../support/folder.ts'
import { connectHost } from '../support/mcp-host.ts'
import { missingNodes } from '../support/nodes/testbed.ts'
import { startServer } from '../support/server.ts'
import { PAYING_MACAROON } from '../support/wallet-recipes.ts'
import { sellingOver } from './lnd-market.ts'
import { shareNodes } from './shared-nodes.ts'

describe('mayfly mcp and LND', { skip: await missingNodes() }, () => {
  const nodes = shareNodes()

  test('a host buys every product from LND once, and the budget has the fees that LND paid', async (t) => {
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
    const { products } = await server.mayfly.catalog()
    const prices = [products.catch, products.pulse, products.whisper].map(
      ({ plans }) => plans[0]?.priceSats ?? 0,
    )
    const { spentMsat } = budgetState({ folder: join(home, 'mayfly'), now: Date.now })
    // The two nodes share a channel, so that no other one takes a fee.
    assert.equal(spentMsat, prices.reduce((sum, price) => sum + price, 0) * 1000)
    assert.equal(host.transcript().includes(macaroon), false)
    await nodes.books.balance(server)
  })

  test('every payment that the node ever received has bought something', () => nodes.books.close())
})
