/**
 * What each wallet says of a payment that is unknown, failed, in flight or paid, from what its node answers. Whether
 * another invoice may be paid rests on these words (docs/sdk.md).
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import type { Wallet, WalletAnswer } from '../../../src/client/wallet.ts'
import { clnWallet } from '../../../src/client/wallets/cln.ts'
import { lndWallet } from '../../../src/client/wallets/lnd.ts'
import { nwcWallet } from '../../../src/client/wallets/nwc.ts'
import { phoenixdWallet } from '../../../src/client/wallets/phoenixd.ts'
import { simulatorWallet } from '../../../src/client/wallets/simulator.ts'
import { anInvoice } from '../../support/invoice.ts'
import { isWalletError } from '../wallets.ts'

const PREIMAGE = '0b'.repeat(32)
const BOLT11 = anInvoice({
  paymentHash: createHash('sha256').update(Buffer.from(PREIMAGE, 'hex')).digest('hex'),
})
const url = 'https://127.0.0.1:1'

type Said = WalletAnswer['state'] | 'nothing'
type Case = [what: string, wallet: Wallet, says: Said]

const answering =
  (body: unknown, status = 200): typeof globalThis.fetch =>
  async () =>
    Response.json(body, { status })

const lnd = (body: unknown, status?: number): Wallet =>
  lndWallet({ url, macaroonHex: '00', fetch: answering(body, status) })
const cln = (body: unknown, status?: number): Wallet =>
  clnWallet({ url, rune: 'rune', fetch: answering(body, status) })
const phoenixd = (body: unknown, status?: number): Wallet =>
  phoenixdWallet({
    url,
    password: 'x',
    fetch:
      typeof body === 'string'
        ? async () => new Response(body, { status: status ?? 200 })
        : answering(body, status),
  })
const nwc = (answer: object | string): Wallet =>
  nwcWallet({
    payInvoice: () => assert.fail('a look-up pays nothing'),
    lookupInvoice: async () => {
      if (typeof answer === 'string') throw Object.assign(new Error(answer), { code: answer })
      return answer
    },
  })
const pays = (...statuses: string[]): object => ({
  pays: statuses.map((status) => ({ status, preimage: PREIMAGE })),
})

const CASES: Case[] = [
  [
    'LND: not found, which is also what it says before it stores a payment, and after it was deleted',
    lnd({ error: { code: 5, message: "payment isn't initiated" } }, 404),
    'unknown',
  ],
  ['LND: failed', lnd({ result: { status: 'FAILED', failure_reason: 'NO_ROUTE' } }), 'failed'],
  ['LND: in flight', lnd({ result: { status: 'IN_FLIGHT' } }), 'pending'],
  ['LND: initiated, with no attempt yet', lnd({ result: { status: 'INITIATED' } }), 'pending'],
  ['LND: paid', lnd({ result: { status: 'SUCCEEDED', payment_preimage: PREIMAGE } }), 'paid'],
  ['LND: a page of a proxy', lnd({ code: 5, message: 'Not Found' }, 404), 'nothing'],
  ['LND: the macaroon may not look', lnd({ message: 'permission denied' }, 500), 'nothing'],
  ['CLN: no payment', cln(pays(), 201), 'unknown'],
  ['CLN: failed, which it also says between two tries', cln(pays('failed'), 201), 'unknown'],
  ['CLN: in flight', cln(pays('pending'), 201), 'pending'],
  ['CLN: one attempt failed and another is under way', cln(pays('failed', 'pending')), 'pending'],
  ['CLN: paid after failed attempts', cln(pays('failed', 'complete', 'failed')), 'paid'],
  ['CLN: the rune may not look', cln({ code: 1502, message: 'no' }, 401), 'nothing'],
  ['phoenixd: no such payment', phoenixd('Not found', 404), 'unknown'],
  ['phoenixd: no such payment, in older versions', phoenixd('Unknown endpoint', 404), 'unknown'],
  ['phoenixd: a page of a proxy', phoenixd('<title>404 Not Found</title>', 404), 'nothing'],
  ['phoenixd: failed', phoenixd({ isPaid: false, completedAt: 1 }), 'failed'],
  ['phoenixd: in flight', phoenixd({ isPaid: false }), 'pending'],
  ['phoenixd: paid', phoenixd({ isPaid: true, preimage: PREIMAGE, completedAt: 1 }), 'paid'],
  ['phoenixd: another password', phoenixd({}, 401), 'nothing'],
  ['NWC: not found', nwc('NOT_FOUND'), 'unknown'],
  ['NWC: it has no look-up', nwc('NOT_IMPLEMENTED'), 'unknown'],
  ['NWC: failed', nwc({ type: 'outgoing', state: 'failed' }), 'failed'],
  [
    'NWC: the invoice expired while it may be paid',
    nwc({ type: 'outgoing', state: 'expired' }),
    'unknown',
  ],
  ['NWC: in flight', nwc({ type: 'outgoing', state: 'pending' }), 'pending'],
  ['NWC: paid', nwc({ type: 'outgoing', state: 'settled', preimage: PREIMAGE }), 'paid'],
  ['NWC: its own invoice, of which it knows no payment', nwc({ type: 'incoming' }), 'unknown'],
  ['NWC: an error of the relay', nwc('INTERNAL'), 'nothing'],
]

for (const [what, wallet, says] of CASES) {
  test(`a wallet says "${says}" of its payment: ${what}`, async () => {
    assert.ok(wallet.lookup)
    if (says === 'nothing') return assert.rejects(wallet.lookup(BOLT11), isWalletError('unknown'))
    const answer = await wallet.lookup(BOLT11)
    assert.equal(answer.state, says)
    if (answer.state === 'paid') assert.equal(answer.preimage, PREIMAGE)
  })
}

test('a wallet names the invoice that it paid, since another one can have the same payment hash', async () => {
  const other = 'lnbcrt1other'
  for (const wallet of [
    lnd({ result: { status: 'SUCCEEDED', payment_preimage: PREIMAGE, payment_request: other } }),
    cln({ pays: [{ status: 'complete', preimage: PREIMAGE, bolt11: other }] }),
    phoenixd({ isPaid: true, preimage: PREIMAGE, invoice: other }),
    nwc({ type: 'outgoing', state: 'settled', preimage: PREIMAGE, invoice: other }),
  ]) {
    const answer = await wallet.lookup?.(BOLT11)
    assert.ok(answer?.state === 'paid')
    assert.equal(answer.bolt11, other)
  }
})

test('a wallet is told from another one of its kind, without a secret', async () => {
  const elsewhere = 'https://user:secret@node.example:8080'
  const ids = await Promise.all(
    [
      ...[url, elsewhere].map((at) => lndWallet({ url: at, macaroonHex: '00' })),
      ...[url, elsewhere].map((at) => clnWallet({ url: at, rune: 'rune' })),
      ...[url, elsewhere].map((at) => phoenixdWallet({ url: at, password: 'x' })),
      ...['02aa', '03bb'].map((walletPubkey) =>
        nwcWallet({ walletPubkey, payInvoice: () => assert.fail('nothing is paid') }),
      ),
      simulatorWallet({ baseUrl: url }),
    ].map((wallet) => wallet.id?.()),
  )
  assert.equal(new Set(ids).size, ids.length)
  assert.equal(ids[1], 'LND at node.example:8080')
})

test('a wallet whose node says paid with another preimage is not believed', async () => {
  const other = '0c'.repeat(32)
  for (const liar of [
    lnd({ result: { status: 'SUCCEEDED', payment_preimage: other } }),
    cln({ pays: [{ status: 'complete', preimage: other }] }),
    phoenixd({ isPaid: true, preimage: other }),
    nwc({ type: 'outgoing', state: 'settled', preimage: other }),
  ]) {
    await assert.rejects(async () => liar.lookup?.(BOLT11), isWalletError('unknown'))
  }
})

test('an unknown payment counts as not paid only at nodes that keep every attempt', () => {
  const keeps = [lnd({}), cln({}), phoenixd({})].map((wallet) => wallet.keepsEveryAttempt)
  assert.deepEqual(keeps, [true, true, true])
  assert.equal(nwc({}).keepsEveryAttempt, false)
  const simulator = simulatorWallet({ baseUrl: url })
  assert.deepEqual([simulator.keepsEveryAttempt, simulator.lookup], [true, undefined])
})
