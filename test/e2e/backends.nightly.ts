/** A whole server on each backend besides LND: bought, paid for, collected, also while nobody watched. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { startRelay } from '../support/nostr-relay.ts'
import { startServer } from '../support/server.ts'
import { CERTIFICATE } from '../support/stand-ins/certificate.ts'
import { startCln } from '../support/stand-ins/cln.ts'
import { createLedger, type Ledger } from '../support/stand-ins/ledger.ts'
import { startNwcWallet } from '../support/stand-ins/nwc-wallet.ts'
import { startPhoenixd } from '../support/stand-ins/phoenixd.ts'

const clock = { now: () => Date.now() }

type Backend = (t: TestContext, own: Ledger) => Promise<{ url: string; wrongUrl: string }>

const phoenixd: Backend = async (t, own) => {
  const standIn = await startPhoenixd({ clock, own })
  t.after(standIn.close)
  const url = (password: string) =>
    standIn.baseUrl.replace('http://', `phoenixd+http://:${encodeURIComponent(password)}@`)
  return { url: url(standIn.limitedPassword), wrongUrl: url('hunter2') }
}

const cln: Backend = async (t, own) => {
  const standIn = await startCln({ clock, own })
  const folder = mkdtempSync(join(tmpdir(), 'mayfly-cln-'))
  t.after(async () => {
    await standIn.close()
    rmSync(folder, { recursive: true })
  })
  writeFileSync(join(folder, 'rune'), standIn.rune())
  writeFileSync(join(folder, 'wrong'), standIn.rune('getinfo'))
  writeFileSync(join(folder, 'ca.pem'), CERTIFICATE)
  const base = standIn.baseUrl.replace('https:', 'cln+https:')
  const url = (rune: string) => `${base}?rune=${folder}/${rune}&cert=${folder}/ca.pem`
  return { url: url('rune'), wrongUrl: url('wrong') }
}

const nwc: Backend = async (t, own) => {
  const relay = await startRelay()
  const wallet = await startNwcWallet({ relayUrl: relay.url, clock, own })
  const lacking = await startNwcWallet({ relayUrl: relay.url, clock, own, methods: ['get_info'] })
  t.after(async () => {
    wallet.close()
    lacking.close()
    await relay.stop()
  })
  return { url: wallet.url, wrongUrl: lacking.url }
}

for (const [name, start] of [
  ['phoenixd', phoenixd],
  ['Core Lightning', cln],
  ['NWC', nwc],
] as const) {
  test(`${name}: an order is paid and collected, and another that was paid during a restart`, async (t) => {
    const own = createLedger(clock)
    const { url } = await start(t, own)
    const server = await startServer(t, { MAYFLY_LIGHTNING_URL: url })
    const inbox = await server.mayfly.buyCatch({
      planId: 'spark',
      maxSats: 10_000,
      onInvoice: ({ bolt11 }) => own.pay(bolt11),
    })
    assert.equal(inbox.product, 'catch')

    let bolt11 = ''
    const idempotencyKey = crypto.randomUUID()
    const stop = new AbortController()
    await assert.rejects(
      server.mayfly.buyPulse({
        planId: 'spark',
        maxSats: 10_000,
        idempotencyKey,
        signal: stop.signal,
        onInvoice(quote) {
          bolt11 = quote.bolt11
          stop.abort(new Error('the buyer went away'))
        },
      }),
    )
    await server.stop()
    own.pay(bolt11)
    await server.restart()
    const monitor = await server.mayfly.buyPulse({
      planId: 'spark',
      maxSats: 10_000,
      idempotencyKey,
      // Until the payment is found it is the same order, and never another invoice.
      onInvoice: (quote) => assert.equal(quote.bolt11, bolt11),
    })
    assert.equal(monitor.product, 'pulse')
    assert.deepEqual(
      own.settled.map(({ timesPaid }) => timesPaid),
      [1, 1],
    )
    assert.ok(!server.logged.some((line) => line.includes(url)))
  })

  test(`${name}: a credential that will not do stops the start, and is not shown`, async (t) => {
    const { wrongUrl } = await start(t, createLedger(clock))
    await assert.rejects(startServer(t, { MAYFLY_LIGHTNING_URL: wrongUrl }), (error: Error) => {
      assert.equal(error.name, 'ConfigError')
      assert.match(error.message, /password of MAYFLY_LIGHTNING_URL|createrune|make_invoice/)
      assert.doesNotMatch(error.message, /hunter2|[0-9a-f]{64}/)
      return true
    })
  })
}
