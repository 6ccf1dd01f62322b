/**
 * `npm run contract:ldk`: LDK Node, the second implementation of Lightning, buys from a Mayfly over a real LND in every
 * way, and is paid through GATE.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import type { CatchCapability, GateProject } from '../../src/client/index.ts'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import { BIN, ENVIRONMENT } from '../support/bin.ts'
import { l402Credential, paymentCredential } from '../support/buying.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { METADATA, startLnurlServer, type Wallet } from '../support/lnurl-server.ts'
import { object, string } from '../support/nodes/json.ts'
import { hasRoute } from '../support/nodes/lnd-node.ts'
import { startTestbed, type Testbed } from '../support/nodes/testbed.ts'
import { look, offerOf } from '../support/one-url.ts'
import { startServer } from '../support/server.ts'
import { settingsFor } from '../support/store.ts'
import { until } from '../support/until.ts'
import { type LdkNode, startLdkNode } from './ldk-node.ts'
import { type Books, collect, openBooks, quote, sellingOver, useInbox } from './lnd-market.ts'

/** Two channels, each too small for the dearest plan. */
const CHANNELS = 2
const CHANNEL_SATS = 1_000_000
const DEAR_SATS = 700_000

suite('LDK Node', () => {
  const closing: (() => unknown)[] = []
  const suiteEnd: After = { after: (work) => closing.push(work) }
  let testbed: Testbed
  let ldk: LdkNode
  let books: Books

  before(async () => {
    testbed = await startTestbed()
    closing.push(testbed.close)
    ldk = await startLdkNode(suiteEnd, {
      binary: process.env.LDK_WALLET ?? 'ldk-wallet',
      folder: await temporaryFolder(suiteEnd),
      chain: testbed.chain,
    })
    await openChannels()
    books = openBooks(testbed.alice)
  })
  after(async () => {
    for (const close of closing.toReversed()) await close()
  })

  async function openChannels(): Promise<void> {
    const { alice, chain } = testbed
    // It must be able to pay for closing its channels.
    const addr = string(await ldk.call('address'))
    await alice.post('/v1/transactions', { addr, amount: '1000000', sat_per_vbyte: '2' })
    await chain.mineWaiting()
    await until('its money', async () => {
      await ldk.call('sync')
      return Number(object(await ldk.call('info')).onchainSats) > 0
    })
    await alice.post('/v1/peers', {
      addr: { pubkey: ldk.nodeId, host: ldk.address },
      perm: true,
      timeout: '60',
    })
    for (let opened = 0; opened < CHANNELS; opened++) {
      await until('a channel', () =>
        alice.post('/v1/channels', {
          node_pubkey_string: ldk.nodeId,
          local_funding_amount: String(CHANNEL_SATS),
          push_sat: String(CHANNEL_SATS / 2),
          sat_per_vbyte: '2',
        }),
      )
      await chain.mineWaiting()
      await chain.mine(9)
    }
    await connected()
  }

  async function connected(): Promise<void> {
    await until('its channels', async () => {
      await ldk.call('sync')
      return object(await ldk.call('info')).channels === CHANNELS
    })
    await until('a route to it', () => hasRoute(testbed.alice, ldk.nodeId))
  }

  async function aServer(t: TestContext, more: Record<string, string> = {}) {
    const catalog = join(await temporaryFolder(t), 'catalog.json')
    writeFileSync(catalog, JSON.stringify({ catch: { long: { priceSats: DEAR_SATS } } }))
    return startServer(t, {
      ...(await sellingOver(t, testbed.alice)),
      MAYFLY_CATALOG: catalog,
      ...more,
    })
  }

  test('LDK pays a quote, and the inbox works', async (t) => {
    const server = await aServer(t)
    const asked = await quote(server.url)
    const preimage = await ldk.pay(asked.bolt11)
    await useInbox(server.url, await collect(server.url, asked.orderId))
    const sent = object(
      await ldk.call('payment', { direction: 'out', paymentHash: asked.paymentHash }),
    )
    assert.equal(sent.amountMsat, asked.amountSats * 1000)
    assert.equal(sent.preimage, preimage)
    await books.balance(server)
  })

  for (const [scheme, credential] of [
    ['Payment', paymentCredential],
    ['L402', l402Credential],
  ] as const) {
    test(`the preimage that LDK got is right in a credential of ${scheme}`, async (t) => {
      const server = await aServer(t)
      const challenge = await look(server)
      const preimage = await ldk.pay(offerOf(challenge).invoice)
      const paid = await look(server, { authorization: credential(challenge, preimage) })
      assert.equal(paid.status, 200, paid.text)
      await useInbox(server.url, (JSON.parse(paid.text) as { resource: CatchCapability }).resource)
      await books.balance(server)
    })
  }

  test('LDK pays in parts through two channels, and one inbox is sold', async (t) => {
    const server = await aServer(t)
    const inbox = await server.mayfly.buyCatch({
      planId: 'long',
      maxSats: DEAR_SATS,
      async onInvoice({ bolt11, paymentHash }) {
        await ldk.pay(bolt11)
        const { htlcs } = await testbed.alice.get(`/v1/invoice/${paymentHash}`)
        assert.ok(Array.isArray(htlcs) && htlcs.length > 1, JSON.stringify(htlcs))
      },
    })
    await useInbox(server.url, inbox)
    await books.balance(server)
  })

  test('a payment that failed while the node was away is made again, and paid once', async (t) => {
    const server = await aServer(t)
    const asked = await quote(server.url)
    await testbed.alice.stop()
    await until('LDK to notice', async () => object(await ldk.call('info')).channels === 0)
    await assert.rejects(ldk.pay(asked.bolt11), /ldk: /)
    await testbed.alice.start()
    await connected()
    await ldk.pay(asked.bolt11)
    await assert.rejects(
      ldk.pay(asked.bolt11),
      /already been (?:initiated|sent)|[Dd]uplicate|given invoice/,
    )
    await useInbox(server.url, await collect(server.url, asked.orderId))
    await books.balance(server)
  })

  test('LDK refuses a quote whose time is over, and nothing is sold', async (t) => {
    const server = await aServer(t, { MAYFLY_QUOTE_SECONDS: '60' })
    const asked = await quote(server.url)
    await until('its end', () => Date.now() > decodeInvoice(asked.bolt11).expiresAt)
    await assert.rejects(ldk.pay(asked.bolt11), /ldk: /)
    await books.balance(server)
  })

  test('GATE pays LDK by its address: a request is let in by preimage, or by the word of the provider', async (t) => {
    const lnurl = await startLnurlServer(t, walletOf(ldk))
    const settings = {
      ...(await sellingOver(t, testbed.alice)),
      MAYFLY_GATE: 'on',
      MAYFLY_ALLOWED_HOSTS: lnurl.host,
    }
    const server = await aServer(t, settings)
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [
        ...[BIN, 'gate', 'project', 'add', '--address', lnurl.address],
        ...['--route', 'render=POST:/render/*:50', '--credits', '5', '--json'],
      ],
      { env: { ...ENVIRONMENT, ...settings, ...settingsFor(server.databaseUrl) } },
    )
    const gate = server.mayfly.gate(JSON.parse(stdout) as GateProject)
    const ask = { route: 'render', method: 'POST', path: '/render/cat?size=2' } as const

    const first = await gate.intent(ask)
    const invoice = decodeInvoice(first.bolt11)
    assert.equal(invoice.amountMsat, first.amountSats * 1000)
    assert.notEqual(invoice.descriptionHash, null)
    const proven = await gate.prove(first.intentId, await testbed.alice.pay(first.bolt11))
    assert.ok(proven.settled)

    const second = await gate.intent(ask)
    assert.equal((await gate.poll(second.intentId)).settled, false)
    await testbed.alice.pay(second.bolt11)
    server.clock.advance(2_000)
    const told = await until('the word of the provider', async () => {
      server.clock.advance(2_000)
      const outcome = await gate.poll(second.intentId)
      return outcome.settled && outcome
    })
    assert.ok(told.settled)
    for (const { paymentHash } of [first, second]) {
      const got = object(await ldk.call('payment', { direction: 'in', paymentHash }))
      assert.deepEqual([got.isSettled, got.amountMsat], [true, first.amountSats * 1000])
    }
  })

  test('every payment that the node got is in the books', () => books.close())
})

function walletOf(ldk: LdkNode): Wallet {
  return {
    async createInvoice(amountMsat) {
      const given = { amountMsat, expirySeconds: 600, metadata: METADATA }
      return string(object(await ldk.call('invoice', given)).bolt11)
    },
    async lookUp(paymentHash) {
      const found = object(await ldk.call('payment', { direction: 'in', paymentHash }))
      return {
        isSettled: found.isSettled === true,
        preimage: typeof found.preimage === 'string' ? found.preimage : null,
      }
    },
    paymentHashOf: (bolt11) => decodeInvoice(bolt11).paymentHash,
  }
}
