/** What the backends besides LND say of their credentials and certificates. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { Server as TlsServer } from 'node:tls'
import type { LightningNode } from '../../../src/lightning/node/node.ts'
import { createNwc } from '../../../src/lightning/nwc/nwc.ts'
import { readNwcUrl } from '../../../src/lightning/nwc/url.ts'
import { createPhoenixd } from '../../../src/lightning/phoenixd/phoenixd.ts'
import { startRelay } from '../../support/nostr-relay.ts'
import { testClock } from '../../support/server.ts'
import { CERTIFICATE_KEY, EXPIRED_CERTIFICATE } from '../../support/stand-ins/certificate.ts'
import { startCln } from '../../support/stand-ins/cln.ts'
import { createLedger, type Ledger } from '../../support/stand-ins/ledger.ts'
import { startNwcWallet } from '../../support/stand-ins/nwc-wallet.ts'
import { startPhoenixd } from '../../support/stand-ins/phoenixd.ts'
import { clnOver } from './cln-over.ts'

type World = {
  lightning: LightningNode
  own: Ledger
  /** The secret, which must be in no message. */
  secret: string
}

type Options = { wrongSecret?: true }

/** For an answer that never comes: else a busy machine has all the time that it needs. */
const HURRIED = { createMs: 3_000, lookupMs: 3_000, infoMs: 3_000 }
const PATIENT = { connectMs: 60_000, createMs: 60_000, lookupMs: 60_000, infoMs: 60_000 }

async function phoenixdWorld(t: TestContext, options: Options): Promise<World> {
  const clock = testClock()
  const own = createLedger(clock)
  const standIn = await startPhoenixd({ clock, own, chain: 'regtest' })
  const secret = options.wrongSecret ? 'hunter2hunter2' : standIn.limitedPassword
  const lightning = createPhoenixd({
    baseUrl: standIn.baseUrl,
    password: secret,
    certificate: undefined,
    clock,
    timeouts: PATIENT,
  })
  t.after(async () => {
    await lightning.close()
    await standIn.close()
  })
  return { lightning, own, secret }
}

async function clnWorld(t: TestContext, options: Options & { lacking?: string }): Promise<World> {
  const clock = testClock()
  const own = createLedger(clock)
  const standIn = await startCln({ clock, own })
  const methods = ['invoice', 'listinvoices', 'waitanyinvoice', 'getinfo']
  const rune = standIn.rune(...methods.filter((each) => each !== options.lacking))
  const secret = options.wrongSecret ? 'hunter2hunter2hunter2hunter2hunter2hunter2hu' : rune
  const lightning = clnOver(t, standIn, { rune: secret, clock, timeouts: PATIENT })
  return { lightning, own, secret }
}

async function nwcWorld(t: TestContext, options: Options): Promise<World> {
  const clock = testClock()
  const own = createLedger(clock)
  const relay = await startRelay()
  const wallet = await startNwcWallet({ relayUrl: relay.url, clock, own })
  const { url } = wallet
  const secret = options.wrongSecret ? 'cd'.repeat(32) : url.slice(-64)
  const lightning = createNwc({
    ...readNwcUrl(url.slice(0, -64) + secret),
    clock,
    // A wallet does not answer whom it does not know.
    timeouts: { ...PATIENT, ...(options.wrongSecret ? HURRIED : {}) },
  })
  t.after(async () => {
    await lightning.close()
    wallet.close()
    await relay.stop()
  })
  return { lightning, own, secret }
}

const WORLDS = [
  ['phoenixd', phoenixdWorld],
  ['Core Lightning', clnWorld],
  ['NWC', nwcWorld],
] as const

for (const [name, start] of WORLDS) {
  describe(`${name} and its credentials`, () => {
    test(`${name}: checking the access finds nothing wrong with a node that is as it should be`, async (t) => {
      const { lightning, own } = await start(t, {})
      assert.equal(await lightning.checkAccess(), null)
      assert.equal(own.made(), 0)
    })

    test(`${name}: checking the access says what is wrong with the credentials, and shows nothing of them`, async (t) => {
      const { lightning, secret } = await start(t, { wrongSecret: true })
      const problem = await lightning.checkAccess()
      const expected = {
        phoenixd: /does not accept the password of MAYFLY_LIGHTNING_URL/,
        'Core Lightning': /the rune does not allow getinfo .* createrune restrictions=/,
        NWC: /does not answer; it is not running, or the connection of MAYFLY_LIGHTNING_URL/,
      }
      assert.match(problem?.sentence ?? '', expected[name])
      assert.ok(!problem?.sentence.includes(secret))
      assert.equal(problem?.isAway, name === 'NWC')
    })
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
