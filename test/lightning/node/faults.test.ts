/** What the backends besides LND do when their node is away, slow, wrong or talkative. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { Server as TlsServer } from 'node:tls'
import { UnknownInvoice } from '../../../src/lightning/lightning.ts'
import type { LightningNode } from '../../../src/lightning/node/node.ts'
import { createNwc } from '../../../src/lightning/nwc/nwc.ts'
import { readNwcUrl } from '../../../src/lightning/nwc/url.ts'
import { createPhoenixd } from '../../../src/lightning/phoenixd/phoenixd.ts'
import { startRelay } from '../../support/nostr-relay.ts'
import { testClock } from '../../support/server.ts'
import { aShop } from '../../support/shop.ts'
import { CERTIFICATE_KEY, EXPIRED_CERTIFICATE } from '../../support/stand-ins/certificate.ts'
import { startCln } from '../../support/stand-ins/cln.ts'
import { createLedger, type Ledger, type LedgerInvoice } from '../../support/stand-ins/ledger.ts'
import { startNwcWallet } from '../../support/stand-ins/nwc-wallet.ts'
import { startPhoenixd } from '../../support/stand-ins/phoenixd.ts'
import { until } from '../../support/until.ts'
import { clnOver } from './cln-over.ts'

type World = {
  lightning: LightningNode
  own: Ledger
  warnings: string[]
  /** The node takes requests and does not answer, or answers what is none. */
  hang(): void
  babble(): void
  recover(): void
  /** Cuts the stream of settlements, or all there is. */
  cut(): void
  /** Nothing answers at the node's address any more. */
  leave(): Promise<void>
  /** Tells of a settlement, again. */
  tell(invoice: LedgerInvoice): unknown
  /** The secret, which must be in no message. */
  secret: string
}

type Options = { network?: string; wrongSecret?: true; lacking?: string }

const TIMEOUTS = {
  connectMs: 1_500,
  createMs: 1_500,
  lookupMs: 1_500,
  infoMs: 1_500,
  retryFirstMs: 10,
  retryMaxMs: 50,
}

const ASK = { amountMsat: 21_000, memo: 'Mayfly', expirySeconds: 900 }

async function phoenixdWorld(t: TestContext, options: Options): Promise<World> {
  const clock = testClock()
  const own = createLedger(clock)
  const standIn = await startPhoenixd({ clock, own, chain: options.network ?? 'regtest' })
  const secret = options.wrongSecret ? 'hunter2hunter2' : standIn.limitedPassword
  const warnings: string[] = []
  const { baseUrl } = standIn
  const certificate = undefined
  const onWarning = (message: string) => warnings.push(message)
  const rest = { certificate, clock, timeouts: TIMEOUTS, onWarning }
  const lightning = createPhoenixd({ baseUrl, password: secret, ...rest })
  t.after(async () => {
    await lightning.close()
    await standIn.close()
  })
  return { lightning, own, warnings, secret, ...httpFaults(standIn), tell: standIn.tell }
}

async function clnWorld(t: TestContext, options: Options): Promise<World> {
  const clock = testClock()
  const own = createLedger(clock)
  const standIn = await startCln({ clock, own, network: options.network ?? 'regtest' })
  const methods = ['invoice', 'listinvoices', 'waitanyinvoice', 'getinfo']
  const rune = standIn.rune(...methods.filter((each) => each !== options.lacking))
  const secret = options.wrongSecret ? 'hunter2hunter2hunter2hunter2hunter2hunter2hu' : rune
  const warnings: string[] = []
  const lightning = clnOver(t, standIn, {
    rune: secret,
    clock,
    timeouts: TIMEOUTS,
    onWarning: (message) => warnings.push(message),
  })
  return { lightning, own, warnings, secret, ...httpFaults(standIn), tell: () => {} }
}

function httpFaults(standIn: Awaited<ReturnType<typeof startPhoenixd | typeof startCln>>) {
  return {
    hang: () => standIn.spoil(() => true),
    babble: () =>
      standIn.spoil((_, response) => {
        response.writeHead(200)
        response.end('x'.repeat(5 * 1024 * 1024))
        return true
      }),
    recover: () => standIn.spoil(null),
    cut: standIn.cut,
    leave: standIn.close,
  }
}

async function nwcWorld(t: TestContext, options: Options): Promise<World> {
  const clock = testClock()
  const own = createLedger(clock)
  const relay = await startRelay()
  const all = ['get_info', 'make_invoice', 'lookup_invoice']
  const methods = all.filter((each) => each !== options.lacking)
  const { network = 'regtest' } = options
  const wallet = await startNwcWallet({ relayUrl: relay.url, clock, own, methods, network })
  const { url } = wallet
  const secret = options.wrongSecret ? 'cd'.repeat(32) : url.slice(-64)
  const warnings: string[] = []
  const lightning = createNwc({
    ...readNwcUrl(url.slice(0, -64) + secret),
    clock,
    // Two hops, and signatures at each.
    timeouts: { ...TIMEOUTS, createMs: 3_000, lookupMs: 3_000, infoMs: 3_000 },
    onWarning: (message) => warnings.push(message),
  })
  t.after(async () => {
    await lightning.close()
    wallet.close()
    await relay.stop()
  })
  return {
    lightning,
    own,
    warnings,
    secret,
    hang: () => wallet.spoil(() => new Promise(() => {})),
    babble: () => wallet.spoil(() => ({ result: 'x'.repeat(50_000), error: undefined }) as never),
    recover: () => wallet.spoil(null),
    cut: relay.cut,
    leave: relay.stop,
    tell: wallet.tell,
  }
}

const WORLDS = [
  ['phoenixd', phoenixdWorld],
  ['Core Lightning', clnWorld],
  ['NWC', nwcWorld],
] as const

for (const [name, start] of WORLDS) {
  describe(`${name} at fault`, () => {
    test(`${name}: checking the access finds nothing wrong with a node that is as it should be`, async (t) => {
      const { lightning, own } = await start(t, {})
      assert.equal(await lightning.checkAccess(), null)
      assert.equal(own.made(), 0)
    })

    test(`${name}: a node that takes a request and does not answer is an error`, async (t) => {
      const { lightning, hang, recover, own, secret } = await start(t, {})
      const { paymentHash } = await lightning.createInvoice(ASK)
      hang()
      const isTooLong = (error: Error) => {
        assert.match(error.message, /took too long/)
        assert.ok(!error.message.includes(secret))
        return !(error instanceof UnknownInvoice)
      }
      const [problem] = await Promise.all([
        lightning.checkAccess(),
        assert.rejects(lightning.lookupInvoice(paymentHash), isTooLong),
        assert.rejects(lightning.info(), isTooLong),
      ])
      assert.equal(problem?.isAway, true)
      recover()
      own.pay(own.find(paymentHash)?.bolt11 ?? '')
      assert.deepEqual(await lightning.lookupInvoice(paymentHash), { state: 'settled' })
    })

    test(`${name}: a malformed or too large answer is an error, and nothing in it is believed`, async (t) => {
      const { lightning, babble } = await start(t, {})
      const { paymentHash } = await lightning.createInvoice(ASK)
      babble()
      const calls = [
        lightning.info(),
        lightning.lookupInvoice(paymentHash),
        lightning.createInvoice(ASK),
      ]
      const isRefused = (error: Error) => !(error instanceof UnknownInvoice)
      await Promise.all(calls.map((call) => assert.rejects(call, isRefused)))
    })

    test(`${name}: a node that does not answer is an error, which says that the node is away`, async (t) => {
      const { lightning, leave, secret } = await start(t, {})
      const { paymentHash } = await lightning.createInvoice(ASK)
      await leave()
      const isAway = (error: Error) => {
        assert.ok(!error.message.includes(secret), error.message)
        return !(error instanceof UnknownInvoice)
      }
      const [problem] = await Promise.all([
        lightning.checkAccess(),
        assert.rejects(lightning.lookupInvoice(paymentHash), isAway),
        assert.rejects(lightning.createInvoice(ASK), isAway),
      ])
      assert.match(problem?.sentence ?? '', /nothing at https?:\/\/127|no relay answers at 127/)
      assert.equal(problem?.isAway, true)
    })

    test(`${name}: checking the access says what is wrong with the credentials, and shows nothing of them`, async (t) => {
      const { lightning, secret } = await start(t, { wrongSecret: true })
      const problem = await lightning.checkAccess()
      const expected = {
        phoenixd: /does not accept the password of MAYFLY_LIGHTNING_URL/,
        'Core Lightning': /the rune does not allow getinfo .* createrune restrictions=/,
        // A wallet does not answer whom it does not know.
        NWC: /does not answer; it is not running, or the connection of MAYFLY_LIGHTNING_URL/,
      }
      assert.match(problem?.sentence ?? '', expected[name])
      assert.ok(!problem?.sentence.includes(secret))
      assert.equal(problem?.isAway, name === 'NWC')
    })

    test(`${name}: a node on testnet is refused`, async (t) => {
      const { lightning } = await start(t, { network: 'testnet' })
      const problem = await lightning.checkAccess()
      assert.match(problem?.sentence ?? '', /the node runs on testnet; mainnet, signet and regtest/)
      await assert.rejects(lightning.createInvoice(ASK), /the node runs on testnet/)
    })

    test(`${name}: settlements are followed again after the stream was cut`, async (t) => {
      const { lightning, own, cut, warnings } = await start(t, {})
      const told = new Set<string>()
      const stop = new AbortController()
      const ended = lightning.watch((hash) => told.add(hash), stop.signal)
      const isTold = () =>
        until('word of a payment', async () => {
          const { bolt11, paymentHash } = await lightning.createInvoice(ASK)
          own.pay(bolt11)
          await until('word of it', () => told.has(paymentHash), { withinMs: 1_000 })
          return true
        })
      await isTold()
      cut()
      await isTold()
      stop.abort()
      await ended
      assert.ok(warnings.length <= 1, warnings.join())
    })

    test(`${name}: a settlement while nobody watched is found by looking it up`, async (t) => {
      const { lightning, own } = await start(t, {})
      const { bolt11, paymentHash } = await lightning.createInvoice(ASK)
      own.pay(bolt11)
      assert.deepEqual(await lightning.lookupInvoice(paymentHash), { state: 'settled' })
    })
  })
}

for (const [name, start] of WORLDS.filter(([each]) => each !== 'Core Lightning')) {
  test(`${name}: a settlement that is reported twice counts once`, async (t) => {
    const { lightning, own, tell } = await start(t, {})
    const shop = await aShop(t)
    const told: string[] = []
    shop.node.replaced = {
      createInvoice: lightning.createInvoice,
      lookupInvoice: lightning.lookupInvoice,
    }
    const hints: Promise<void>[] = []
    const stop = new AbortController()
    const ended = lightning.watch((hash) => {
      told.push(hash)
      hints.push(shop.orders.reconcile(hash, 'stream'))
    }, stop.signal)
    await until('word of a payment', async () => {
      const { bolt11, paymentHash } = await lightning.createInvoice(ASK)
      own.pay(bolt11)
      await until('word of it', () => told.includes(paymentHash), { withinMs: 1_000 })
      return true
    })
    const { orderId, bolt11, paymentHash } = await shop.quote()
    own.pay(bolt11)
    const invoice = own.find(paymentHash)
    assert.ok(invoice)
    // At once, while the first word may still be followed, and again when it has been.
    await tell(invoice)
    await until('it is settled', async () => (await shop.order({ orderId }))?.state === 'settled')
    await tell(invoice)
    await until('word of it three times', () => {
      return told.filter((hash) => hash === paymentHash).length === 3
    })
    await Promise.all(hints)
    assert.equal((await shop.provisioned()).length, 1)
    assert.equal(shop.logged.filter(({ event }) => event === 'order.settled').length, 1)
    assert.deepEqual(await lightning.lookupInvoice(paymentHash), { state: 'settled' })
    stop.abort()
    await ended
  })
}

test('Core Lightning: checking the access says which method the rune lacks, and makes no invoice to find out', async (t) => {
  for (const lacking of ['invoice', 'listinvoices', 'waitanyinvoice']) {
    const { lightning, own } = await clnWorld(t, { lacking })
    const problem = await lightning.checkAccess()
    assert.match(problem?.sentence ?? '', new RegExp(`the rune does not allow ${lacking} `))
    assert.equal(own.made(), 0)
  }
})

test('NWC: checking the access says which method the connection lacks', async (t) => {
  const { lightning } = await nwcWorld(t, { lacking: 'make_invoice' })
  const problem = await lightning.checkAccess()
  assert.match(problem?.sentence ?? '', /the connection does not allow make_invoice; make one/)
})

test('phoenixd: an amount that is not whole sats is refused', async (t) => {
  const { lightning } = await phoenixdWorld(t, {})
  await assert.rejects(lightning.createInvoice({ ...ASK, amountMsat: 21_500 }), RangeError)
})

test('Core Lightning: an error says what vouches for a certificate that is not known', async (t) => {
  const clock = testClock()
  const standIn = await startCln({ clock, own: createLedger(clock) })
  const lightning = clnOver(t, standIn, { clock, certificate: undefined })
  const problem = await lightning.checkAccess()
  assert.match(problem?.sentence ?? '', /the cert of MAYFLY_LIGHTNING_URL does not vouch for; use/)
  assert.equal(problem?.isAway, false)
})

test('Core Lightning: an error says of a certificate that ran out that the node needs a new one', async (t) => {
  const clock = testClock()
  const standIn = await startCln({ clock, own: createLedger(clock) })
  assert.ok(standIn.server instanceof TlsServer)
  standIn.server.setSecureContext({ cert: EXPIRED_CERTIFICATE, key: CERTIFICATE_KEY })
  const lightning = clnOver(t, standIn, { clock, certificate: EXPIRED_CERTIFICATE })
  const problem = await lightning.checkAccess()
  assert.match(problem?.sentence ?? '', /ran out; make the node a new one, and copy it here again/)
  assert.equal(problem?.isAway, false)
})
