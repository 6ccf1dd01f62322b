/** What the backends besides LND make of answers that are wrong, unclear or about something else. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, type TestContext, test } from 'node:test'
import type { LightningNode } from '../../../src/lightning/node/node.ts'
import { createNwc } from '../../../src/lightning/nwc/nwc.ts'
import { readNwcUrl } from '../../../src/lightning/nwc/url.ts'
import { createPhoenixd } from '../../../src/lightning/phoenixd/phoenixd.ts'
import { encodeInvoice } from '../../../src/protocol/bolt11-sign.ts'
import { startRelay } from '../../support/nostr-relay.ts'
import { type ManualClock, manualClock } from '../../support/shop.ts'
import { startCln } from '../../support/stand-ins/cln.ts'
import { sendJson } from '../../support/stand-ins/http-server.ts'
import { createLedger, type Ledger, type LedgerInvoice } from '../../support/stand-ins/ledger.ts'
import { startNwcWallet } from '../../support/stand-ins/nwc-wallet.ts'
import { startPhoenixd } from '../../support/stand-ins/phoenixd.ts'
import { clnOver } from './cln-over.ts'

type Fields = Record<string, unknown>

type World = {
  lightning: LightningNode
  clock: ManualClock
  own: Ledger
  /** The node's answer to a look-up, with these fields in place of its own. */
  seen(invoice: LedgerInvoice, changes: Fields): void
  /** The node's answer to the making of an invoice. */
  made(bolt11: string, paymentHash: string): void
  /** What the node was asked, by the name of the call. */
  asked(): string[]
}

const ASK = { amountMsat: 21_000, memo: 'Mayfly', expirySeconds: 900 }
const GRACE_MS = 10 * 60_000
const OTHER_HASH = 'ee'.repeat(32)

/** Without what is left out. */
const without = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

async function clnWorld(t: TestContext): Promise<World> {
  const clock = manualClock(Date.now())
  const own = createLedger(clock)
  const standIn = await startCln({ clock, own })
  const lightning = clnOver(t, standIn, { clock })
  const answer = (method: string, body: unknown) =>
    standIn.spoil(({ line }, response) => {
      if (line !== `POST /v1/${method}`) return false
      sendJson(response, body, 201)
      return true
    })
  return {
    lightning,
    clock,
    own,
    seen({ paymentHash }, changes) {
      const invoice = { payment_hash: paymentHash, status: 'unpaid', ...changes }
      answer('listinvoices', { invoices: [without(invoice)] })
    },
    made: (bolt11, payment_hash) => answer('invoice', { bolt11, payment_hash }),
    asked: () => standIn.requests.map(({ line }) => line.replace('POST /v1/', '')),
  }
}

async function phoenixdWorld(t: TestContext): Promise<World> {
  const clock = manualClock(Date.now())
  const own = createLedger(clock)
  const standIn = await startPhoenixd({ clock, own })
  const lightning = createPhoenixd({
    baseUrl: standIn.baseUrl,
    password: standIn.limitedPassword,
    certificate: undefined,
    clock,
  })
  t.after(async () => {
    await lightning.close()
    await standIn.close()
  })
  const answer = (start: string, body: unknown) =>
    standIn.spoil(({ line }, response) => {
      if (!line.startsWith(start)) return false
      sendJson(response, body)
      return true
    })
  return {
    lightning,
    clock,
    own,
    seen({ paymentHash, expiresAt }, changes) {
      const invoice = { paymentHash, isPaid: false, expiresAt, ...changes }
      answer('GET /payments/incoming/', without(invoice))
    },
    made: (serialized, paymentHash) =>
      answer('POST /createinvoice', { amountSat: 21, serialized, paymentHash }),
    asked: () => standIn.requests.map(({ line }) => line),
  }
}

async function nwcWorld(t: TestContext): Promise<World> {
  const clock = manualClock(Date.now())
  const own = createLedger(clock)
  const relay = await startRelay()
  const wallet = await startNwcWallet({ relayUrl: relay.url, clock, own })
  const patient = { createMs: 60_000, lookupMs: 60_000, infoMs: 60_000 }
  const lightning = createNwc({ ...readNwcUrl(wallet.url), clock, timeouts: patient })
  t.after(async () => {
    await lightning.close()
    wallet.close()
    await relay.stop()
  })
  const answer = (method: string, result: unknown) =>
    wallet.spoil((asked) => (asked === method ? ({ result, error: undefined } as never) : null))
  return {
    lightning,
    clock,
    own,
    seen({ paymentHash, expiresAt, preimage }, changes) {
      const invoice = {
        type: 'incoming',
        state: 'pending',
        payment_hash: paymentHash,
        // There before the payment with some wallets.
        preimage,
        expires_at: expiresAt / 1000,
        settled_at: 0,
        ...changes,
      }
      answer('lookup_invoice', without(invoice))
    },
    made: (invoice, payment_hash) => answer('make_invoice', { invoice, payment_hash }),
    asked: () => wallet.requests,
  }
}

const WORLDS = {
  'Core Lightning': {
    start: clnWorld,
    settled: { status: 'paid' },
    other: { payment_hash: OTHER_HASH },
    unclear: [{ status: 'held' }, { status: undefined }, { status: 1 }],
    /** What a look at the access may ask; an invoice is asked for with an amount that is none. */
    access: ['getinfo', 'listinvoices', 'invoice', 'waitanyinvoice'],
  },
  phoenixd: {
    start: phoenixdWorld,
    settled: { isPaid: true },
    other: { paymentHash: OTHER_HASH },
    unclear: [{ isPaid: undefined }, { isPaid: 'yes' }, { isPaid: 1 }, { isPaid: null }],
    access: ['GET /getinfo'],
  },
  NWC: {
    start: nwcWorld,
    settled: { state: 'settled', settled_at: 1_700_000_000 },
    other: { payment_hash: OTHER_HASH },
    unclear: [
      { state: undefined },
      { state: null },
      { state: 'SETTLED' },
      { state: 'failed' },
      { state: 1 },
      { settled_at: '2026-11-22T00:00:00Z' },
      { settled_at: '1700000000' },
      { settled_at: -1 },
      // Settled, and not settled.
      { state: 'pending', settled_at: 1_700_000_000 },
      { state: undefined, settled_at: 1_700_000_000, preimage: undefined },
      { state: undefined, settled_at: 1_700_000_000, preimage: 'ab'.repeat(32) },
      { state: undefined, settled_at: 0 },
    ],
    access: ['get_info'],
  },
} satisfies Record<string, Fields & { start: (t: TestContext) => Promise<World> }>

for (const [name, { start, settled, other, unclear, access }] of Object.entries(WORLDS)) {
  describe(`an answer of ${name}`, () => {
    test(`an answer of ${name} that is clear is believed`, async (t) => {
      const { lightning, own, seen } = await start(t)
      const invoice = own.make(ASK)
      seen(invoice, settled)
      assert.deepEqual(await lightning.lookupInvoice(invoice.paymentHash), { state: 'settled' })
    })

    test(`an answer of ${name} about another payment hash is refused, settled or not`, async (t) => {
      const { lightning, own, seen } = await start(t)
      const invoice = own.make(ASK)
      for (const changes of [other, { ...settled, ...other }]) {
        seen(invoice, changes)
        await assert.rejects(lightning.lookupInvoice(invoice.paymentHash), { reason: 'malformed' })
      }
    })

    test(`an answer of ${name} whose state is unclear is an error: neither open, nor dead long after the expiry`, async (t) => {
      const { lightning, own, clock, seen } = await start(t)
      const invoice = own.make(ASK)
      for (const waitMs of [0, ASK.expirySeconds * 1000 + GRACE_MS + 1]) {
        clock.advance(waitMs)
        for (const changes of unclear) {
          seen(invoice, changes)
          await assert.rejects(
            lightning.lookupInvoice(invoice.paymentHash),
            { reason: 'malformed' },
            JSON.stringify(changes),
          )
        }
      }
    })

    test(`an answer of ${name} with an invoice that was not asked for is refused before anybody sees it`, async (t) => {
      const { lightning, own, clock, made } = await start(t)
      const right = own.make(ASK)
      made(right.bolt11, right.paymentHash)
      assert.equal((await lightning.createInvoice(ASK)).bolt11, right.bolt11)
      const dearer = own.make({ ...ASK, amountMsat: 22_000 })
      const longer = own.make({ ...ASK, expirySeconds: 901 })
      const late = createLedger({ now: () => clock.now() + 121_000 }).make(ASK)
      const elsewhere = encodeInvoice(
        {
          network: 'mainnet',
          amountMsat: ASK.amountMsat,
          timestamp: Math.floor(clock.now() / 1000),
          expirySeconds: ASK.expirySeconds,
          paymentHash: right.paymentHash,
          paymentSecret: randomBytes(32),
          description: ASK.memo,
        },
        randomBytes(32).fill(1, 0, 1),
      )
      const wrong: [what: RegExp, bolt11: string, paymentHash: string][] = [
        [/the amount differs/, dearer.bolt11, dearer.paymentHash],
        [/the expiry differs/, longer.bolt11, longer.paymentHash],
        [/the clocks .* are too far apart/, late.bolt11, late.paymentHash],
        [/it is for mainnet, not regtest/, elsewhere, right.paymentHash],
        [/the payment hash differs/, right.bolt11, OTHER_HASH],
      ]
      for (const [message, bolt11, paymentHash] of wrong) {
        made(bolt11, paymentHash)
        await assert.rejects(lightning.createInvoice(ASK), { name: 'WrongInvoice', message })
      }
    })

    test(`an answer of ${name} about the access takes one question of each kind, and no invoice is made to find out`, async (t) => {
      const { lightning, own, asked } = await start(t)
      assert.equal(await lightning.checkAccess(), null)
      assert.deepEqual(asked(), access)
      assert.equal(own.made(), 0)
    })
  })
}

for (const name of ['phoenixd', 'NWC'] as const) {
  test(`${name}: an invoice is open for ten minutes after its expiry, and dead by a guess then`, async (t) => {
    const { lightning, own, clock, seen } = await WORLDS[name].start(t)
    const invoice = own.make(ASK)
    const { paymentHash } = invoice
    seen(invoice, {})
    clock.advance(invoice.expiresAt + GRACE_MS - clock.now())
    assert.deepEqual(await lightning.lookupInvoice(paymentHash), { state: 'open' })
    clock.advance(1)
    assert.deepEqual(await lightning.lookupInvoice(paymentHash), { state: 'dead', isFinal: false })
    seen(invoice, WORLDS[name].settled)
    assert.deepEqual(await lightning.lookupInvoice(paymentHash), { state: 'settled' })
  })
}

test('NWC: a payment that went out is not an invoice of ours, whatever its hash', async (t) => {
  const { lightning, own, seen } = await nwcWorld(t)
  const invoice = own.make(ASK)
  seen(invoice, { type: 'outgoing', state: 'settled', settled_at: 1_700_000_000 })
  await assert.rejects(lightning.lookupInvoice(invoice.paymentHash), { reason: 'malformed' })
})

test('NWC: a time of settlement with the preimage is as good as a state', async (t) => {
  const { lightning, own, seen } = await nwcWorld(t)
  const invoice = own.make(ASK)
  for (const preimage of [invoice.preimage, invoice.preimage.toUpperCase()]) {
    for (const state of [undefined, null, 'SETTLED']) {
      seen(invoice, { state, settled_at: 1_700_000_000, preimage })
      assert.deepEqual(await lightning.lookupInvoice(invoice.paymentHash), { state: 'settled' })
    }
  }
})

test('NWC: a payment that is held stays open, however late', async (t) => {
  const { lightning, own, clock, seen } = await nwcWorld(t)
  const invoice = own.make(ASK)
  seen(invoice, { state: 'accepted' })
  clock.advance(30 * 24 * 3_600_000)
  assert.deepEqual(await lightning.lookupInvoice(invoice.paymentHash), { state: 'open' })
})
