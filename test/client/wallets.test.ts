/** What wallets make of nodes that lie, dawdle or forget. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { clnWallet } from '../../src/client/wallets/cln.ts'
import { lndWallet } from '../../src/client/wallets/lnd.ts'
import { nwcWallet } from '../../src/client/wallets/nwc.ts'
import { type Node, type Payment, payingWallet } from '../../src/client/wallets/paying.ts'
import { phoenixdWallet } from '../../src/client/wallets/phoenixd.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { isWalletError } from '../contract/wallets.ts'
import { createLedger } from '../support/stand-ins/ledger.ts'

const ledger = createLedger(systemClock)

const anInvoice = (amountMsat = 21_000) =>
  ledger.make({ amountMsat, memo: 'Mayfly', expirySeconds: 900 })

const lost = () => Promise.reject(new TypeError('fetch failed'))

/** A node that says this, look-up by look-up; its last word stays. */
function node(script: {
  lookups: (Payment | Error)[]
  send?: Node['send']
  refusesRepeats?: boolean
}): Node & { sent: number } {
  const made = {
    name: 'a node',
    id: 'a node',
    refusesRepeats: script.refusesRepeats ?? true,
    sent: 0,
    async lookup() {
      const [next = { state: 'none' }] = script.lookups
      if (script.lookups.length > 1) script.lookups.shift()
      if (next instanceof Error) throw next
      return next as Payment
    },
    async send(...args: Parameters<Node['send']>) {
      made.sent += 1
      return script.send ? script.send(...args) : { state: 'pending' as const }
    },
  }
  return made
}

const NONE: Payment = { state: 'none' }
const FAILED: Payment = { state: 'failed', reason: 'no route' }

describe('a wallet', () => {
  test('a wallet does not believe a payment without the preimage of the invoice', async () => {
    const { bolt11 } = anInvoice()
    for (const preimage of ['', 'ab'.repeat(32), 'ab']) {
      const liar = node({ lookups: [NONE], send: async () => ({ state: 'paid', preimage }) })
      await assert.rejects(payingWallet(liar).pay(bolt11), isWalletError('unknown'))
    }
  })

  test('a wallet gives the preimage in lower case, whatever the node writes', async () => {
    const { bolt11, preimage } = anInvoice()
    const paid = { state: 'paid' as const, preimage: preimage.toUpperCase() }
    assert.deepEqual(await payingWallet(node({ lookups: [paid] })).pay(bolt11), { preimage })
  })

  test('a wallet sends nothing for a payment that is under way, and waits for its end', async () => {
    const { bolt11, preimage } = anInvoice()
    const busy = node({
      lookups: [{ state: 'pending' }, { state: 'pending' }, { state: 'paid', preimage }],
    })
    assert.deepEqual(await payingWallet(busy).pay(bolt11), { preimage })
    assert.equal(busy.sent, 0)
  })

  for (const [what, script] of Object.entries<Parameters<typeof node>[0]>({
    'is still under way when time is up': { lookups: [NONE, { state: 'pending' }] },
    'hangs where it is sent, however long the node keeps quiet': {
      lookups: [NONE],
      send: () => new Promise(() => {}),
    },
    'has failed, maybe in an older attempt, where the answer was lost': {
      lookups: [FAILED],
      send: lost,
    },
  })) {
    test(`a wallet says "unknown" of a payment that ${what}`, async () => {
      const wallet = payingWallet(node(script), { timeoutMs: 100 })
      await assert.rejects(wallet.pay(anInvoice().bolt11), isWalletError('unknown'))
    })
  }

  test('a wallet says "unknown" when it is cancelled after it has sent', async () => {
    const { bolt11 } = anInvoice()
    const cancel = new AbortController()
    const hanging = node({
      lookups: [NONE],
      send() {
        cancel.abort()
        return new Promise(() => {})
      },
    })
    await assert.rejects(
      payingWallet(hanging).pay(bolt11, { signal: cancel.signal }),
      isWalletError('unknown'),
    )
  })

  test('a wallet says "not paid" for a lost answer only when the attempt is new and has failed', async () => {
    const { bolt11 } = anInvoice()
    const failed = node({ lookups: [NONE, FAILED], send: lost })
    await assert.rejects(payingWallet(failed).pay(bolt11), isWalletError('not paid'))
  })

  test('a wallet does not ask a second time where the first attempt is open and the node might pay twice', async () => {
    const { bolt11 } = anInvoice()
    const forgetful = node({ lookups: [NONE], send: lost, refusesRepeats: false })
    const wallet = payingWallet(forgetful, { timeoutMs: 100 })
    await assert.rejects(wallet.pay(bolt11), isWalletError('unknown'))
    await assert.rejects(wallet.pay(bolt11), isWalletError('unknown'))
    assert.equal(forgetful.sent, 1)
  })

  test('a wallet says "unknown" of an attempt that it left open, also when its node is away', async () => {
    const { bolt11 } = anInvoice()
    const script = { lookups: [NONE] as (Payment | Error)[], send: lost }
    const wallet = payingWallet(node(script), { timeoutMs: 100 })
    await assert.rejects(wallet.pay(bolt11), isWalletError('unknown'))
    script.lookups = [new TypeError('fetch failed')]
    await assert.rejects(wallet.pay(bolt11), isWalletError('unknown'))
    await assert.rejects(wallet.pay(anInvoice().bolt11), isWalletError('not paid'))
  })

  test('a wallet allows 5 % for routing, 10 sat at least, or as much as it is told', async () => {
    const limits: number[] = []
    const asking = () =>
      node({
        lookups: [NONE],
        async send(_, maxFeeMsat) {
          limits.push(maxFeeMsat)
          return FAILED
        },
      })
    for (const amountMsat of [21_000, 1_000_000]) {
      await assert.rejects(payingWallet(asking()).pay(anInvoice(amountMsat).bolt11))
    }
    await assert.rejects(payingWallet(asking(), { maxFeeSats: 3 }).pay(anInvoice().bolt11))
    assert.deepEqual(limits, [10_000, 50_000, 3_000])
  })
})

test('phoenixd: sends nothing whose fixed fee is above the limit', async () => {
  const asked: string[] = []
  const wallet = phoenixdWallet({
    url: 'http://node',
    password: 'hunter2',
    maxFeeSats: 4,
    fetch: async (url) => {
      asked.push(String(url))
      return new Response('Unknown endpoint (check api doc)', { status: 404 })
    },
  })
  await assert.rejects(wallet.pay(anInvoice().bolt11), isWalletError('not paid'))
  assert.ok(asked.every((url) => url.includes('/payments/outgoingbyhash/')))
})

test('NWC: a reply that times out is "unknown", even if the wallet knows of no payment', async () => {
  const code = (name: string) => Object.assign(new Error(name), { code: name })
  const wallet = nwcWallet(
    {
      // What @getalby/sdk throws for its own timeout has NIP-47's code INTERNAL.
      payInvoice: () => Promise.reject(code('INTERNAL')),
      lookupInvoice: () => Promise.reject(code('NOT_FOUND')),
    },
    { timeoutMs: 100 },
  )
  await assert.rejects(wallet.pay(anInvoice().bolt11), isWalletError('unknown'))
})

test('NWC: without look-ups, only a refusal that was not even tried is "not paid"', async () => {
  for (const [name, outcome] of [
    ['INSUFFICIENT_BALANCE', 'not paid'],
    ['PAYMENT_FAILED', 'unknown'],
  ] as const) {
    const refused = Object.assign(new Error('no'), { code: name })
    const wallet = nwcWallet({ payInvoice: () => Promise.reject(refused) }, { timeoutMs: 100 })
    await assert.rejects(wallet.pay(anInvoice().bolt11), isWalletError(outcome))
  }
})

test('Core Lightning: a failed try is not the last word where the answer was lost', async () => {
  let asked = 0
  const wallet = clnWallet({
    url: 'https://node',
    rune: 'rune',
    timeoutMs: 100,
    fetch: async (url) => {
      if (String(url).endsWith('/v1/pay')) throw new TypeError('fetch failed')
      const pays = asked++ === 0 ? [] : [{ status: 'failed' }]
      return Response.json({ pays })
    },
  })
  await assert.rejects(wallet.pay(anInvoice().bolt11), isWalletError('unknown'))
})

test('NWC: a connection that may not look payments up is like one without look-ups', async () => {
  const code = (name: string) => Object.assign(new Error(name), { code: name })
  for (const [refusal, why] of [
    ['RESTRICTED', /its answer was lost; its connection lacks lookup_invoice/],
    ['NOT_IMPLEMENTED', /its answer was lost/],
  ] as const) {
    const wallet = nwcWallet(
      {
        payInvoice: () => Promise.reject(code('PAYMENT_FAILED')),
        lookupInvoice: () => Promise.reject(code(refusal)),
      },
      { timeoutMs: 100 },
    )
    await assert.rejects(
      wallet.pay(anInvoice().bolt11),
      (error: Error) => isWalletError('unknown')(error) && why.test(error.message),
    )
  }
})

test('NWC: where no relay is there, nothing was paid, and the error says why', async () => {
  const wallet = nwcWallet({
    payInvoice: () => assert.fail('it was asked to pay'),
    lookupInvoice: () => Promise.any([Promise.reject(new Error('ws://relay.example'))]),
  })
  await assert.rejects(wallet.pay(anInvoice().bolt11), {
    outcome: 'not paid',
    message: 'the wallet could not be asked, so nothing was sent (no relay answers)',
  })
})

test('LND: gives up on an answer without an end, and shows no macaroon', async () => {
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(1024 * 1024).fill(32)),
  })
  const wallet = lndWallet({
    url: 'https://node',
    macaroonHex: '02'.repeat(60),
    fetch: async () => new Response(endless),
  })
  await assert.rejects(wallet.pay(anInvoice().bolt11), isWalletError('not paid'))
})
