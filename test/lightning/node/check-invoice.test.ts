/** The checks before and after a node makes an invoice, at their bounds. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { InvoiceRequest } from '../../../src/lightning/lightning.ts'
import {
  checkInvoice,
  checkInvoiceRequest,
  expiryOf,
  unpaidStatus,
} from '../../../src/lightning/node/check-invoice.ts'
import { readableInvoice } from '../../../src/protocol/bolt11.ts'
import type { InvoiceFields } from '../../../src/protocol/bolt11-sign.ts'
import { anInvoice as signed } from '../../support/invoice.ts'

const NOW = 1_767_225_600_000
const HASH = 'ab'.repeat(32)
const ASK: InvoiceRequest = { amountMsat: 21_000, memo: 'Mayfly', expirySeconds: 900 }

const anInvoice = (changes: Partial<InvoiceFields> = {}): string =>
  signed({ timestamp: NOW / 1000, ...changes })

const check = (bolt11: string, now = NOW) =>
  checkInvoice({ bolt11, paymentHash: HASH }, { request: ASK, network: 'regtest', now })

describe('what a node is asked for', () => {
  const refused: [ask: Partial<InvoiceRequest>, message: string][] = [
    [{ amountMsat: 0 }, 'amountMsat must be a positive integer'],
    [{ amountMsat: -1 }, 'amountMsat must be a positive integer'],
    [{ amountMsat: 0.5 }, 'amountMsat must be a positive integer'],
    [{ amountMsat: 2 ** 53 }, 'amountMsat must be a positive integer'],
    [{ expirySeconds: 0 }, 'expirySeconds must be a positive integer'],
    [{ expirySeconds: 1.5 }, 'expirySeconds must be a positive integer'],
  ]
  for (const [ask, message] of refused) {
    test(`a node is not asked for ${JSON.stringify(ask).slice(0, 40)}: ${message}`, () => {
      assert.throws(() => checkInvoiceRequest({ ...ASK, ...ask }), { name: 'RangeError', message })
    })
  }

  test('a node is asked for one millisatoshi and one second', () => {
    checkInvoiceRequest({ ...ASK, amountMsat: 1, expirySeconds: 1 })
  })
})

describe("a node's invoice", () => {
  test('an invoice that says what was asked is taken, up to two minutes off the clock', () => {
    for (const away of [0, 120, -120]) check(anInvoice({ timestamp: NOW / 1000 + away }))
  })

  const clocks = 'the clocks of the node and of this machine are too far apart'
  const wrong: [changes: Partial<InvoiceFields>, message: string][] = [
    [{ network: 'mainnet' }, 'it is for mainnet, not regtest'],
    [{ amountMsat: 20_999 }, 'the amount differs'],
    [{ amountMsat: 21_001 }, 'the amount differs'],
    [{ amountMsat: null as never }, 'the amount differs'],
    [{ paymentHash: 'cd'.repeat(32) }, 'the payment hash differs'],
    [{ expirySeconds: 899 }, 'the expiry differs'],
    [{ timestamp: NOW / 1000 + 121 }, clocks],
    [{ timestamp: NOW / 1000 - 121 }, clocks],
  ]
  for (const [changes, message] of wrong) {
    test(`an invoice with ${JSON.stringify(changes)} is wrong: ${message}`, () => {
      assert.throws(() => check(anInvoice(changes)), {
        name: 'WrongInvoice',
        message: `the Lightning node made a wrong invoice: ${message}`,
      })
    })
  }

  test('a text that is no invoice is wrong, and is not quoted', () => {
    const text = `${anInvoice().slice(0, -1)}b`
    assert.throws(
      () => check(text),
      (error: Error) => {
        assert.equal(error.name, 'WrongInvoice')
        assert.match(error.message, /^the Lightning node made a wrong invoice: ./)
        assert.doesNotMatch(error.message, /lnbcrt/)
        return true
      },
    )
    assert.equal(readableInvoice(text), null)
    assert.equal(readableInvoice(anInvoice())?.paymentHash, HASH)
  })
})

describe('an unpaid invoice', () => {
  const GRACE_MS = 10 * 60_000

  test('an unpaid invoice is dead by a guess from ten minutes after its expiry, and open where nobody knows that', () => {
    assert.deepEqual(unpaidStatus(NOW, NOW + GRACE_MS), { state: 'open' })
    assert.deepEqual(unpaidStatus(NOW, NOW + GRACE_MS + 1), { state: 'dead', isFinal: false })
    assert.deepEqual(unpaidStatus(undefined, NOW * 2), { state: 'open' })
  })

  test('the expiry is that of the invoice, and unknown where there is none', () => {
    assert.equal(expiryOf(anInvoice()), NOW + 900_000)
    for (const text of [undefined, null, '', 'lnbcrt1', 7]) assert.equal(expiryOf(text), undefined)
  })
})
