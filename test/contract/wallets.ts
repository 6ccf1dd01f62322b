/** What every wallet of the SDK does, whatever pays for it. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { type Wallet, WalletError } from '../../src/client/wallet.ts'
import type { Clock } from '../../src/lib/clock.ts'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import { anInvoice } from '../support/invoice.ts'
import { createLedger } from '../support/stand-ins/ledger.ts'

export type WalletUnderTest = {
  wallet: Wallet
  /** One whose first payment reaches the node, and whose answer to that does not come back. */
  losingAnswer(): Wallet
  /** One whose node is not there. */
  away(): Wallet
  /** An invoice that the wallet can pay. */
  invoice(): Promise<string>
  /** One that the wallet's node refuses to pay, or cannot. */
  unpayable(): Promise<string>
  /** How often the payee was paid for this invoice. */
  timesPaid(bolt11: string): Promise<number>
  close(): Promise<void>
}

export function walletContract(
  name: string,
  setup: () => Promise<WalletUnderTest>,
  options: { skip?: string | false } = {},
): void {
  describe(`Wallet: ${name}`, { skip: options.skip ?? false }, () => {
    let world: WalletUnderTest
    before(async () => {
      world = await setup()
    })
    after(() => world?.close())

    test(`${name} pays an invoice and gives the preimage that proves it`, async () => {
      const bolt11 = await world.invoice()
      const { preimage } = await world.wallet.pay(bolt11)
      assert.match(preimage, /^[0-9a-f]{64}$/)
      assert.equal(hashOf(preimage), decodeInvoice(bolt11).paymentHash)
      assert.equal(await world.timesPaid(bolt11), 1)
    })

    test(`${name} that is asked again for a paid invoice pays nothing and gives the same preimage`, async () => {
      const bolt11 = await world.invoice()
      const { preimage } = await world.wallet.pay(bolt11)
      assert.equal((await world.wallet.pay(bolt11)).preimage, preimage)
      assert.equal(await world.timesPaid(bolt11), 1)
    })

    test(`${name} knows what it has paid, and of nothing else, and asking pays nothing`, async () => {
      const [bolt11, other] = [await world.invoice(), await world.invoice()]
      const { lookup } = world.wallet
      const before = (await lookup?.(bolt11)) ?? { state: 'unknown' }
      assert.equal(before.state, 'unknown')
      const { preimage } = await world.wallet.pay(bolt11)
      const after = await lookup?.(bolt11)
      // One without a look-up is asked to pay again, which says the same.
      if (after)
        assert.deepEqual([after.state, 'preimage' in after && after.preimage], ['paid', preimage])
      if (lookup) assert.equal((await lookup(other)).state, 'unknown')
      assert.deepEqual([await world.timesPaid(bolt11), await world.timesPaid(other)], [1, 0])
    })

    test(`${name} says "not paid" for what its node refuses, and then that it failed, or nothing`, async () => {
      const bolt11 = await world.unpayable()
      await assert.rejects(world.wallet.pay(bolt11), isWalletError('not paid'))
      const after = (await world.wallet.lookup?.(bolt11)) ?? { state: 'unknown' }
      assert.ok(after.state === 'failed' || after.state === 'unknown', after.state)
    })

    test(`${name} has a name that says which wallet it is, without a secret`, async () => {
      const id = (await world.wallet.id?.()) ?? ''
      assert.doesNotMatch(id, /rune|macaroon|password|secret/i)
    })

    test(`${name} that is asked five times at once pays once and gives all the same preimage`, async () => {
      const bolt11 = await world.invoice()
      const paid = await Promise.all(Array.from({ length: 5 }, () => world.wallet.pay(bolt11)))
      assert.equal(new Set(paid.map(({ preimage }) => preimage)).size, 1)
      assert.equal(await world.timesPaid(bolt11), 1)
    })

    test(`${name} finds the payment whose answer was lost, and does not pay again`, async () => {
      const bolt11 = await world.invoice()
      const { preimage } = await world.losingAnswer().pay(bolt11)
      assert.equal(hashOf(preimage), decodeInvoice(bolt11).paymentHash)
      assert.equal(await world.timesPaid(bolt11), 1)
    })

    test(`${name} says "not paid" where it was cancelled before`, async () => {
      const bolt11 = await world.invoice()
      const signal = AbortSignal.abort()
      await assert.rejects(world.wallet.pay(bolt11, { signal }), isWalletError('not paid'))
      assert.equal(await world.timesPaid(bolt11), 0)
    })

    test(`${name} says "not paid" for a text that is not an invoice, or names no amount`, async () => {
      for (const bolt11 of ['', 'lnbcrt1', anInvoice({ amountMsat: null })]) {
        await assert.rejects(world.wallet.pay(bolt11), isWalletError('not paid'))
      }
    })

    test(`${name} never says that an invoice is paid while its node is away`, async () => {
      const bolt11 = await world.invoice()
      await assert.rejects(world.away().pay(bolt11), WalletError)
      assert.equal(await world.timesPaid(bolt11), 0)
      await world.wallet.pay(bolt11)
    })
  })
}

/** Whom wallets pay, where no node is real. */
export function aPayee(clock: Clock) {
  const shop = createLedger(clock)
  const ask = { amountMsat: 21_000, memo: 'Mayfly', expirySeconds: 900 }
  return {
    shop,
    invoice: async () => shop.make(ask).bolt11,
    // Of a node that there is no route to.
    unpayable: async () => createLedger(clock).make(ask).bolt11,
    timesPaid: async (bolt11: string) =>
      shop.find(decodeInvoice(bolt11).paymentHash)?.timesPaid ?? 0,
  }
}

/** For `assert.rejects`: a WalletError with this outcome, whose message shows no long hex. */
export function isWalletError(outcome: WalletError['outcome']): (error: unknown) => true {
  return (error) => {
    assert.ok(error instanceof WalletError, String(error))
    assert.equal(error.outcome, outcome, error.message)
    assert.doesNotMatch(error.message, /[0-9a-f]{40}/)
    return true
  }
}

/** A fetch that sends the first request that `isSending` picks, and loses the answer to it. */
export function losingFetch(
  isSending: (url: string) => boolean,
  fetch: typeof globalThis.fetch = globalThis.fetch,
): typeof globalThis.fetch {
  let hasLost = false
  return async (input, init) => {
    if (hasLost || !isSending(String(input))) return fetch(input, init)
    hasLost = true
    await (await fetch(input, init)).arrayBuffer()
    throw new TypeError('fetch failed')
  }
}

function hashOf(preimage: string): string {
  return createHash('sha256').update(Buffer.from(preimage, 'hex')).digest('hex')
}
