/** Credentials that can just pay, and what a wallet says of those that cannot. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { openWallet, pinnedFetch } from '../../src/cli/wallet.ts'
import { clnWallet } from '../../src/client/wallets/cln.ts'
import { phoenixdWallet } from '../../src/client/wallets/phoenixd.ts'
import type { After } from '../support/folder.ts'
import { startRelay } from '../support/nostr-relay.ts'
import { testClock } from '../support/server.ts'
import { CERTIFICATE } from '../support/stand-ins/certificate.ts'
import { startCln } from '../support/stand-ins/cln.ts'
import { createLedger } from '../support/stand-ins/ledger.ts'
import { startNwcWallet } from '../support/stand-ins/nwc-wallet.ts'
import { startPhoenixd } from '../support/stand-ins/phoenixd.ts'
import type { Restrictions } from '../support/stand-ins/runes.ts'
import { OPENING, PAYING_RUNE } from '../support/wallet-recipes.ts'

const CEILING_MSAT = 1_000_000

async function startShop(t: After) {
  const clock = testClock()
  const shop = createLedger(clock)
  const node = await startCln({ clock, own: createLedger(clock), others: shop })
  t.after(node.close)
  const { fetch, close } = pinnedFetch(CERTIFICATE)
  t.after(close)
  const wallet = (restrictions: Restrictions, maxFeeSats?: number) =>
    clnWallet({
      url: node.baseUrl,
      rune: node.restricted(restrictions),
      fetch,
      ...(maxFeeSats === undefined ? {} : { maxFeeSats }),
    })
  const invoice = (amountMsat = 21_000) =>
    shop.make({ amountMsat, memo: 'Mayfly', expirySeconds: 900 }).bolt11
  return { shop, node, fetch, wallet, invoice }
}

/** For `assert.rejects`: nothing was paid, and the message has these words. */
const refusal = (words: string) => (error: Error & { outcome?: string }) => {
  assert.equal(error.outcome, 'not paid', error.message)
  assert.ok(error.message.includes(words), error.message)
  return true
}

describe('the rune of docs/run/nodes.md', () => {
  test('a rune with the limits of the recipe pays the highest price and fee that it allows, and again', async (t) => {
    const { shop, wallet, invoice } = await startShop(t)
    const mine = wallet(PAYING_RUNE)
    for (const amountMsat of [21_000, CEILING_MSAT, CEILING_MSAT]) {
      await mine.pay(invoice(amountMsat))
    }
    assert.equal(shop.settled.length, 3)
  })

  test('a rune with the limits of the recipe pays no higher price and no higher fee, and the error names the limit', async (t) => {
    const { shop, wallet, invoice } = await startShop(t)
    await assert.rejects(
      wallet(PAYING_RUNE, 10).pay(invoice(CEILING_MSAT + 1)),
      refusal(
        'does not allow this pay ("Not permitted: method is equal to pay AND pinvbolt11_amount',
      ),
    )
    await assert.rejects(
      wallet(PAYING_RUNE, 51).pay(invoice()),
      refusal('does not allow this pay ("Not permitted: method is equal to pay AND pnamemaxfee'),
    )
    assert.equal(shop.settled.length, 0)
  })

  test('a thief of the recipe’s rune cannot leave the limit of the fee out, nor call anything else', async (t) => {
    const { shop, node, fetch, invoice } = await startShop(t)
    const rune = node.restricted(PAYING_RUNE)
    const calls: [method: string, params: Record<string, unknown>][] = [
      ['pay', { bolt11: invoice() }],
      ['pay', { bolt11: invoice(), maxfeepercent: 5000 }],
      ['pay', { bolt11: invoice(), maxfee: '1btc' }],
      ['xpay', { invstring: invoice() }],
      ...['invoice', 'withdraw', 'getinfo', 'listfunds', 'listinvoices', 'keysend', 'close'].map(
        (method): [string, Record<string, unknown>] => [method, {}],
      ),
    ]
    for (const [method, params] of calls) {
      const response = await fetch(`${node.baseUrl}/v1/${method}`, {
        method: 'POST',
        headers: { rune },
        body: JSON.stringify(params),
      })
      assert.equal(response.status, 401, method)
    }
    assert.equal(shop.settled.length, 0)
  })

  test('a rune with a rate pays nothing, because the look-up before a payment counts', async (t) => {
    const { shop, wallet, invoice } = await startShop(t)
    const rated = wallet([...PAYING_RUNE, ['method/pay', 'rate=3']])
    await assert.rejects(rated.pay(invoice()), refusal('too soon'))
    assert.equal(shop.settled.length, 0)
  })
})

test('Core Lightning: a rune without a method pays nothing, and the error names the method', async (t) => {
  const { shop, wallet, invoice } = await startShop(t)
  const methods = ['pay', 'listpays']
  for (const missing of methods) {
    const others = methods.filter((each) => each !== missing).map((each) => `method=${each}`)
    await assert.rejects(
      wallet([others]).pay(invoice()),
      refusal(`the rune does not allow this ${missing} (`),
    )
  }
  assert.equal(shop.settled.length, 0)
})

test('Core Lightning: a rune of another node is called that', async (t) => {
  const { node, fetch, invoice } = await startShop(t)
  const wallet = clnWallet({ url: node.baseUrl, rune: 'A'.repeat(64), fetch })
  await assert.rejects(wallet.pay(invoice()), refusal('does not accept the rune'))
})

test('phoenixd: the limited password pays nothing, and the error names the full one', async (t) => {
  const clock = testClock()
  const shop = createLedger(clock)
  const node = await startPhoenixd({ clock, own: createLedger(clock), others: shop })
  t.after(node.close)
  const wallet = phoenixdWallet({ url: node.baseUrl, password: node.limitedPassword })
  const { bolt11 } = shop.make({ amountMsat: 21_000, memo: 'Mayfly', expirySeconds: 900 })
  await assert.rejects(wallet.pay(bolt11), refusal('paying needs the full http-password'))
  assert.equal(shop.settled.length, 0)
})

describe('a connection over Nostr', () => {
  async function connection(t: After, methods: string[]) {
    const clock = testClock()
    const shop = createLedger(clock)
    const relay = await startRelay()
    t.after(relay.stop)
    const own = createLedger(clock)
    const node = await startNwcWallet({ relayUrl: relay.url, clock, own, others: shop, methods })
    t.after(node.close)
    const { wallet, close } = await openWallet(node.url, OPENING)
    t.after(close)
    const { bolt11 } = shop.make({ amountMsat: 21_000, memo: 'Mayfly', expirySeconds: 900 })
    return { node, shop, wallet, bolt11 }
  }

  test('a connection with pay_invoice and lookup_invoice pays, and needs nothing else', async (t) => {
    const { shop, node, wallet, bolt11 } = await connection(t, ['pay_invoice', 'lookup_invoice'])
    await wallet.pay(bolt11)
    assert.equal(shop.settled.length, 1)
    assert.deepEqual(new Set(node.requests), new Set(['lookup_invoice', 'pay_invoice']))
  })

  test('a connection that may not pay is told apart from one whose budget is spent', async (t) => {
    const unable = await connection(t, ['lookup_invoice'])
    await assert.rejects(
      unable.wallet.pay(unable.bolt11),
      refusal('its connection lacks pay_invoice'),
    )
    const poor = await connection(t, ['pay_invoice', 'lookup_invoice'])
    const error = { code: 'QUOTA_EXCEEDED', message: 'budget' }
    poor.node.spoil((method) => (method === 'pay_invoice' ? { result: undefined, error } : null))
    await assert.rejects(poor.wallet.pay(poor.bolt11), refusal("the connection's budget"))
    assert.equal(unable.shop.settled.length + poor.shop.settled.length, 0)
  })
})
