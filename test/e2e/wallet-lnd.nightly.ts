/** What the macaroon of docs/run/nodes.md can do on a real LND: buy, and nothing else. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { pinnedFetch } from '../../src/cli/wallet.ts'
import { lndWallet } from '../../src/client/wallets/lnd.ts'
import type { After } from '../support/folder.ts'
import { list, object, string } from '../support/nodes/json.ts'
import { missingNodes } from '../support/nodes/testbed.ts'
import { startServer } from '../support/server.ts'
import { PAYING_MACAROON } from '../support/wallet-recipes.ts'
import { sellingOver } from './lnd-market.ts'
import { shareNodes } from './shared-nodes.ts'

describe('a paying wallet on LND', { skip: await missingNodes() }, () => {
  const nodes = shareNodes()

  function bobsFetch(t: After): typeof globalThis.fetch {
    const { fetch, close } = pinnedFetch(nodes.testbed.bob.certificate())
    t.after(close)
    return fetch
  }

  async function walletWith(t: After, permissions: string[]) {
    const { bob } = nodes.testbed
    const macaroonHex = await bob.bake(...permissions)
    return lndWallet({ url: bob.baseUrl, macaroonHex, fetch: bobsFetch(t) })
  }

  test('a macaroon of two calls buys from LND, and finds the payment again', async (t) => {
    const server = await startServer(t, await sellingOver(t, nodes.testbed.alice))
    const wallet = await walletWith(t, PAYING_MACAROON)
    let bolt11 = ''
    const inbox = await server.mayfly.buyCatch({
      planId: 'spark',
      onInvoice: (quote) => {
        bolt11 = quote.bolt11
      },
      wallet,
      maxSats: 1000,
    })
    assert.match(inbox.ownerToken, /^catch_owner_/)
    const { preimage } = await wallet.pay(bolt11)
    assert.match(preimage, /^[0-9a-f]{64}$/)
    await nodes.books.balance(server)
  })

  test('a macaroon of two calls reads no balance, makes no invoice, sends nothing on-chain and touches no channel', async (t) => {
    const { alice, bob } = nodes.testbed
    const macaroonHex = await bob.bake(...PAYING_MACAROON)
    const fetch = bobsFetch(t)
    const { channels } = await bob.get('/v1/channels')
    const [txid, output] = string(object(list(channels)[0]).channel_point).split(':')
    const { addr } = await alice.post('/v2/wallet/address/next', { type: 1 })
    const forbidden: [method: string, path: string, body?: unknown][] = [
      ['GET', '/v1/getinfo'],
      ['GET', '/v1/balance/channels'],
      ['GET', '/v1/balance/blockchain'],
      ['GET', '/v1/channels'],
      ['GET', '/v1/payments'],
      ['GET', '/v1/invoices'],
      ['GET', '/v1/transactions'],
      ['GET', '/v2/router/mc'],
      ['POST', '/v1/invoices', { value: '1' }],
      ['POST', '/v1/transactions', { addr, amount: '1000', sat_per_vbyte: '1' }],
      ['POST', '/v2/wallet/send', { outputs: [], sat_per_kw: '253' }],
      ['POST', '/v2/wallet/address/next', { type: 1 }],
      ['POST', '/v1/channels', { node_pubkey_string: '00', local_funding_amount: '20000' }],
      ['DELETE', `/v1/channels/${txid}/${output}?force=true`],
      ['DELETE', '/v1/payments?include_all_payments=true&all_payments=true'],
      // A payment by a call that this wallet does not use.
      ['POST', '/v2/router/route/send', {}],
      ['POST', '/v1/macaroon', { permissions: [{ entity: 'offchain', action: 'write' }] }],
      ['POST', '/v1/signmessage', { msg: 'aGk=' }],
      ['POST', '/v1/stop', {}],
    ]
    for (const [method, path, body] of forbidden) {
      const response = await fetch(`${bob.baseUrl}${path}`, {
        method,
        headers: { 'grpc-metadata-macaroon': macaroonHex },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      assert.equal(response.ok, false, `${method} ${path}: ${text}`)
      assert.match(text, /permission denied/, `${method} ${path}`)
    }
  })

  test('a macaroon without one of the two calls pays nothing, and the error names the call', async (t) => {
    const server = await startServer(t, await sellingOver(t, nodes.testbed.alice))
    for (const missing of PAYING_MACAROON) {
      const rest = PAYING_MACAROON.filter((each) => each !== missing)
      // LND bakes no macaroon without any permission.
      const wallet = await walletWith(t, [...rest, 'info:read'])
      const buying = server.mayfly.buyCatch({ planId: 'spark', wallet, maxSats: 1000 })
      await assert.rejects(buying, (error: Error) => {
        assert.equal(error.message, 'payment failed')
        assert.ok(String(error.cause).includes(`the macaroon lacks ${missing}`), `${error.cause}`)
        return true
      })
    }
    await nodes.books.balance(server)
  })

  test('every payment that the node ever received has bought something', () => nodes.books.close())
})
