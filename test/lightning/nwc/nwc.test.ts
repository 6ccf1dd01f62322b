/** What the answers of a wallet over Nostr mean, and how its notifications are followed. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { UnknownInvoice } from '../../../src/lightning/lightning.ts'
import { createNwc, type NwcOptions } from '../../../src/lightning/nwc/nwc.ts'
import { readNwcUrl } from '../../../src/lightning/nwc/url.ts'
import { startRelay } from '../../support/nostr-relay.ts'
import { manualClock } from '../../support/shop.ts'
import { createLedger } from '../../support/stand-ins/ledger.ts'
import { startNwcWallet } from '../../support/stand-ins/nwc-wallet.ts'
import { until } from '../../support/until.ts'

const ASK = { amountMsat: 21_001, memo: 'Mayfly', expirySeconds: 901 }
const HASH = 'ab'.repeat(32)
// Wallet, relay and Mayfly share one thread here.
const PATIENT = { createMs: 60_000, lookupMs: 60_000, infoMs: 60_000 }

type Changes = {
  options?: Partial<NwcOptions>
  wallet?: Partial<Parameters<typeof startNwcWallet>[0]>
  /** Changes the connection string. */
  url?: (url: string) => string
}

async function aWorld(
  t: TestContext,
  { options, wallet: changes, url = (own) => own }: Changes = {},
) {
  const clock = manualClock(Date.now())
  const own = createLedger(clock)
  const relay = await startRelay()
  const wallet = await startNwcWallet({ relayUrl: relay.url, clock, own, ...changes })
  const warnings: string[] = []
  const lightning = createNwc({
    ...readNwcUrl(url(wallet.url)),
    clock,
    timeouts: PATIENT,
    onWarning: (message) => warnings.push(message),
    ...options,
  })
  t.after(async () => {
    await lightning.close()
    wallet.close()
    await relay.stop()
  })
  /** Refuses a method. */
  const refuse = (method: string, code: unknown, message: unknown): void =>
    wallet.spoil((asked) =>
      asked === method ? ({ result: undefined, error: { code, message } } as never) : null,
    )
  const watch = () => {
    const told: string[] = []
    const stop = new AbortController()
    const ended = lightning.watch((hash) => told.push(hash), stop.signal)
    t.after(async () => {
      stop.abort()
      await ended
    })
    const isUnderWay = () =>
      until('a watch that tells of payments', async () => {
        const invoice = own.make(ASK)
        await wallet.tell(invoice)
        await until('word of it', () => told.includes(invoice.paymentHash), { withinMs: 1_000 })
        return true
      })
    return { told, isUnderWay }
  }
  return { clock, own, relay, wallet, lightning, warnings, refuse, watch }
}

const malformed = (message: string) => ({
  name: 'NodeError',
  reason: 'malformed',
  message: `NWC: ${message}`,
})

test('a refusal of a wallet is told with its code and message, and only NOT_FOUND means that it knows no such invoice', async (t) => {
  const { lightning, refuse } = await aWorld(t)
  const secret = 'ab'.repeat(32)
  for (const [code, message, answer] of [
    ['INTERNAL', 'try again', { code: 'INTERNAL', message: 'try again' }],
    ['RATE_LIMITED', `no ${secret}`, { code: 'RATE_LIMITED', message: 'no …' }],
    [secret, 'odd', { code: '…', message: 'odd' }],
    [404, 'odd', { code: '404', message: 'odd' }],
    ['INTERNAL', 7, { code: 'INTERNAL', message: '7' }],
    [null, null, { code: 'INTERNAL', message: 'unknown Error' }],
    [undefined, undefined, { code: 'INTERNAL', message: 'unknown Error' }],
  ] as const) {
    refuse('lookup_invoice', code, message)
    await assert.rejects(lightning.lookupInvoice(HASH), {
      name: 'NodeError',
      reason: 'refused',
      message: `NWC: looking up an invoice was refused: ${answer.code}, ${answer.message}`,
      answer,
    })
  }
  refuse('lookup_invoice', 'NOT_FOUND', 'no such invoice')
  await assert.rejects(lightning.lookupInvoice(HASH), UnknownInvoice)
  refuse('get_info', 'INTERNAL', 'no')
  await assert.rejects(lightning.info(), {
    message: 'NWC: asking for the wallet was refused: INTERNAL, no',
  })
  refuse('make_invoice', 'QUOTA_EXCEEDED', 'no')
  await assert.rejects(lightning.createInvoice(ASK), {
    message: 'NWC: making an invoice was refused: QUOTA_EXCEEDED, no',
  })
})

test('an answer of a wallet that nobody can read is an error, and does not end the process', async (t) => {
  const { lightning, wallet } = await aWorld(t)
  for (const [text, form] of [
    ['null', undefined],
    ['7', undefined],
    ['[]', undefined],
    ['"text"', undefined],
    ['{', undefined],
    // No text can be made of these.
    ['{"error":{"code":"INTERNAL","message":{"toString":1}}}', undefined],
    ['{"error":{"code":{"toString":1},"message":"no"}}', undefined],
    ['{"error":{"code":"INTERNAL","message":[{"toString":1}]}}', undefined],
    ['not encrypted', 'raw'],
  ] as const) {
    wallet.garble(text, form)
    await assert.rejects(
      lightning.info(),
      malformed('asking for the wallet got an unreadable answer'),
    )
  }
  wallet.garble(null)
  assert.equal((await lightning.info()).network, 'regtest')
})

test('a wallet whose encryption is not known is told apart from one that does not answer', async (t) => {
  const { lightning } = await aWorld(t, { wallet: { encryption: 'nip99' as never } })
  await assert.rejects(
    lightning.info(),
    malformed('asking for the wallet got an unreadable answer'),
  )
})

test('checking the access of a wallet that does not answer names its relays', async (t) => {
  const { lightning, wallet, relay } = await aWorld(t, {
    options: { timeouts: { ...PATIENT, infoMs: 300 } },
    url: (url) => url.replace('&secret', '&relay=ws%3A%2F%2F127.0.0.1%3A1&secret'),
  })
  wallet.spoil(() => new Promise(() => {}))
  assert.deepEqual(await lightning.checkAccess(), {
    sentence: `NWC: asking for the wallet took too long: the wallet behind ${new URL(relay.url).host}, 127.0.0.1:1 does not answer; it is not running, or the connection of MAYFLY_LIGHTNING_URL was deleted there`,
    isAway: true,
  })
})

test('checking the access of a wallet says where no relay answers', async (t) => {
  const { lightning, relay } = await aWorld(t)
  await relay.stop()
  assert.deepEqual(await lightning.checkAccess(), {
    sentence: `NWC: asking for the wallet failed: no relay answers at ${new URL(relay.url).host}`,
    isAway: true,
  })
})

test("a wallet's watch tells of each payment with a readable hash, and leaves other notifications out", async (t) => {
  const { wallet, own, warnings, watch } = await aWorld(t)
  const { told, isUnderWay } = watch()
  await isUnderWay()
  const before = told.length
  const received = (notification: unknown) =>
    JSON.stringify({ notification_type: 'payment_received', notification })
  for (const text of [
    JSON.stringify({ notification_type: 'payment_sent', notification: { payment_hash: HASH } }),
    received('text'),
    received({}),
    received({ payment_hash: 1 }),
    received({ payment_hash: `${HASH}ab` }),
    received({ payment_hash: `x${HASH}` }),
    received({ payment_hash: [HASH] }),
    'null',
    '7',
    '{',
  ]) {
    await wallet.say(text)
  }
  const last = own.make(ASK)
  await wallet.tell(last)
  await until('word of it', () => told.includes(last.paymentHash))
  assert.deepEqual(told.slice(before), [last.paymentHash])
  assert.deepEqual(warnings, [])
})

test("a wallet's watch warns when no relay answers any more, and goes on when one does again", async (t) => {
  const timeouts = { ...PATIENT, infoMs: 2_000, probeEveryMs: 20, retryFirstMs: 1, retryMaxMs: 20 }
  const { relay, warnings, watch } = await aWorld(t, { options: { timeouts } })
  const { isUnderWay } = watch()
  await isUnderWay()
  await relay.stop()
  await until('a warning', () => warnings.length > 0)
  assert.match(
    warnings[0] ?? '',
    /^NWC: (asking for the wallet|following the payments) (failed|took too long); connecting again$/,
  )
  await relay.start()
  await isUnderWay()
})

test("a wallet's watch says what it was doing when nothing answers from the start", async (t) => {
  const timeouts = { ...PATIENT, retryFirstMs: 1, retryMaxMs: 5 }
  const { relay, warnings, watch } = await aWorld(t, { options: { timeouts } })
  await relay.stop()
  watch()
  await until('a warning', () => warnings.length > 0)
  assert.equal(warnings[0], 'NWC: following the payments failed; connecting again')
})
