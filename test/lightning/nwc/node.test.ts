/** What a wallet over Nostr is asked for, and what becomes of its answers. No wallet, no relay. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Nip47ReplyTimeoutError, Nip47WalletError } from '@getalby/sdk/nwc'
import { UnknownInvoice } from '../../../src/lightning/lightning.ts'
import { type NwcOptions, nwcOver } from '../../../src/lightning/nwc/nwc.ts'
import { manualClock } from '../../support/shop.ts'
import { createLedger } from '../../support/stand-ins/ledger.ts'

const ASK = { amountMsat: 21_001, memo: 'Mayfly', expirySeconds: 901 }
const GRACE_MS = 10 * 60_000

/** A node over a client that gives these answers, or throws them if they are errors. */
function aWorld(answers: Record<string, unknown> = {}, options: Partial<NwcOptions> = {}) {
  const clock = manualClock()
  const own = createLedger(clock)
  const asked: unknown[][] = []
  let closed = 0
  const all: Record<string, unknown> = { get_info: { network: 'regtest' }, ...answers }
  const node = nwcOver(
    {
      request: async (method, ...rest) => {
        asked.push([method, ...rest])
        const answer = all[method]
        if (answer instanceof Error) throw answer
        return answer
      },
      subscribe: async () => assert.fail('nobody watches'),
      close: () => void closed++,
    },
    { relays: ['wss://a.example', 'ws://b.example:7000'], clock, ...options },
  )
  const answer = (method: string, result: unknown) => {
    all[method] = result
  }
  return { node, clock, own, asked, answer, closed: () => closed }
}

const tooLong = new Nip47ReplyTimeoutError('no', 'INTERNAL')

test('a wallet is asked for an invoice of exactly the amount, the memo and the expiry, within ten seconds', async () => {
  const { node, own, asked, answer } = aWorld()
  const { bolt11, paymentHash } = own.make(ASK)
  for (const payment_hash of [paymentHash, undefined]) {
    answer('make_invoice', { invoice: bolt11, payment_hash })
    const made = await node.createInvoice(ASK)
    assert.deepEqual([made.bolt11, made.paymentHash], [bolt11, paymentHash])
  }
  const params = { amount: 21_001, description: 'Mayfly', expiry: 901 }
  assert.deepEqual(asked, [
    ['get_info', {}, 10_000],
    ['make_invoice', params, 10_000],
    ['make_invoice', params, 10_000],
  ])
})

test('an invoice of a wallet for another amount, or that nobody can read, is refused', async () => {
  const { node, own, answer } = aWorld()
  const { bolt11, paymentHash } = own.make(ASK)
  const dearer = own.make({ ...ASK, amountMsat: 21_002 })
  for (const [result, message] of [
    [{ invoice: dearer.bolt11 }, /the amount differs/],
    [{ invoice: bolt11, payment_hash: dearer.paymentHash }, /the payment hash differs/],
    [{ invoice: `${bolt11}b` }, /^NWC: invoice is unreadable$/],
    [{ payment_hash: paymentHash }, /^NWC: invoice is missing$/],
    [{ invoice: bolt11, payment_hash: null }, /^NWC: payment_hash is not a hash$/],
    [null, /^NWC: an answer is not an object$/],
  ] as const) {
    answer('make_invoice', result)
    await assert.rejects(node.createInvoice(ASK), { message })
  }
})

test('a wallet is asked for the state of one invoice by its hash, and its expiry is judged by the clock of the service', async () => {
  const { node, own, clock, asked, answer } = aWorld()
  const { paymentHash, bolt11, expiresAt } = own.make(ASK)
  answer('lookup_invoice', { state: 'pending', payment_hash: paymentHash, invoice: bolt11 })
  clock.advance(expiresAt + GRACE_MS - clock.now())
  assert.deepEqual(await node.lookupInvoice(paymentHash), { state: 'open' })
  assert.deepEqual(asked, [['lookup_invoice', { payment_hash: paymentHash }, 10_000]])
  clock.advance(1)
  assert.deepEqual(await node.lookupInvoice(paymentHash), { state: 'dead', isFinal: false })
  answer('lookup_invoice', { state: 'settled', payment_hash: paymentHash })
  assert.deepEqual(await node.lookupInvoice(paymentHash), { state: 'settled' })
  answer('lookup_invoice', 'settled')
  await assert.rejects(node.lookupInvoice(paymentHash), {
    message: 'NWC: an answer is not an object',
  })
})

test('an invoice is unknown to a wallet only if it says so', async () => {
  const { node, answer } = aWorld()
  const hash = 'ab'.repeat(32)
  answer('lookup_invoice', new Nip47WalletError('no such invoice', 'NOT_FOUND'))
  await assert.rejects(node.lookupInvoice(hash), UnknownInvoice)
  for (const [error, reason] of [
    [new Nip47WalletError('NOT_FOUND', 'OTHER'), 'refused'],
    [tooLong, 'timeout'],
    [new Error('NOT_FOUND'), 'unreachable'],
  ] as const) {
    answer('lookup_invoice', error)
    await assert.rejects(node.lookupInvoice(hash), { name: 'NodeError', reason })
  }
})

test('a look at the access of a wallet says in a sentence what is wrong, and whether that may pass', async () => {
  const { node, answer } = aWorld()
  const lacks = (methods: string) =>
    `NWC: the connection does not allow ${methods}; make one in the wallet for make_invoice, lookup_invoice, get_info and notifications, and nothing else`
  const refused = (code: string) => new Nip47WalletError('no', code)
  const info = (changes: object) => ({ network: 'regtest', ...changes })
  for (const [result, sentence, isAway] of [
    [info({ methods: ['lookup_invoice', 'make_invoice'] }), null, false],
    [info({ methods: undefined }), null, false],
    [info({ methods: 'lookup_invoice' }), null, false],
    [info({ methods: ['make_invoice'] }), lacks('lookup_invoice'), false],
    [info({ methods: ['lookup_invoice'] }), lacks('make_invoice'), false],
    [info({ methods: [] }), lacks('make_invoice, lookup_invoice'), false],
    [refused('RESTRICTED'), lacks('get_info'), false],
    [refused('UNAUTHORIZED'), lacks('get_info'), false],
    [refused('OTHER'), 'NWC: asking for the wallet was refused: OTHER, no', false],
    [{}, 'NWC: network is missing', false],
    [
      { network: 'testnet' },
      'NWC: the node runs on testnet; mainnet, signet and regtest are supported',
      false,
    ],
    [
      tooLong,
      'NWC: asking for the wallet took too long: the wallet behind a.example, b.example:7000 does not answer; it is not running, or the connection of MAYFLY_LIGHTNING_URL was deleted there',
      true,
    ],
    [
      new AggregateError([]),
      'NWC: asking for the wallet failed: no relay answers at a.example, b.example:7000',
      true,
    ],
  ] as const) {
    answer('get_info', result)
    const problem = sentence === null ? null : { sentence, isAway }
    assert.deepEqual(await node.checkAccess(), problem)
  }
})

test('the network of a wallet is read in either case, and bitcoin is mainnet', async () => {
  const { node, answer } = aWorld()
  for (const [named, network] of [
    ['bitcoin', 'mainnet'],
    ['Mainnet', 'mainnet'],
    ['SIGNET', 'signet'],
    ['regtest', 'regtest'],
  ]) {
    answer('get_info', { network: named, pubkey: `02${'ab'.repeat(32)}` })
    assert.deepEqual(await node.info(), { network, synced: true, nodeId: null })
  }
})

test('closing a wallet closes its client', async () => {
  const { node, closed } = aWorld()
  await node.close()
  assert.equal(closed(), 1)
})
