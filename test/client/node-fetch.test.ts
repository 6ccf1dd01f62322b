import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openNode } from '../../src/client/wallets/node-fetch.ts'
import { phoenixdWallet } from '../../src/client/wallets/phoenixd.ts'
import { testClock } from '../support/server.ts'
import { serve } from '../support/serving.ts'
import { createLedger } from '../support/stand-ins/ledger.ts'
import { startPhoenixd } from '../support/stand-ins/phoenixd.ts'

test('the credentials of a wallet follow no redirect, wherever the node sends them', async (t) => {
  const asked: string[] = []
  const elsewhere = await serve(t, ({ url = '' }, response) => {
    asked.push(url)
    response.end()
  })
  const node = await serve(t, (_request, response) => {
    response.writeHead(307, { location: elsewhere }).end()
  })
  const headers = { authorization: 'Basic c2VjcmV0' }
  const { signal } = new AbortController()
  await assert.rejects(openNode(fetch, node, { method: 'GET', headers, signal }))
  assert.deepEqual(asked, [])
})

test('the fee that phoenixd names in satoshis is told in millisatoshis', async (t) => {
  const clock = testClock()
  const shop = createLedger(clock)
  const node = await startPhoenixd({ clock, own: createLedger(clock), others: shop })
  t.after(node.close)
  const wallet = phoenixdWallet({
    url: node.baseUrl,
    password: node.password,
    async fetch(input, init) {
      const answer = await fetch(input, init)
      if (answer.status !== 200) return answer
      const body = (await answer.json()) as object
      return Response.json({ ...body, routingFeeSat: 7 })
    },
  })
  const { bolt11 } = shop.make({ amountMsat: 21_000, memo: 'Mayfly', expirySeconds: 900 })
  assert.equal((await wallet.pay(bolt11)).feeMsat, 7_000)
})
