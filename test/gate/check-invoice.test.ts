/** Which invoice of a provider a payer may see, at the bounds. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkInvoice } from '../../src/gate/provider.ts'
import { InvalidInvoice } from '../../src/protocol/bolt11.ts'
import { LnurlError } from '../../src/protocol/lnurl.ts'
import { anInvoice as signed } from '../support/invoice.ts'

const NOW = 1_767_225_600_000
const SECONDS = NOW / 1000
const HASH = 'ab'.repeat(32)

const anInvoice = (changes: Parameters<typeof signed>[0] = {}): string =>
  signed({ amountMsat: 50_000, timestamp: SECONDS, expirySeconds: 3_600, ...changes })

const check = (bolt11: string) =>
  checkInvoice(bolt11, { network: 'regtest', amountMsat: 50_000, now: NOW })

test('an invoice is shown with its payment hash and its end', () => {
  const bolt11 = anInvoice()
  assert.deepEqual(check(bolt11), { bolt11, paymentHash: HASH, expiresAt: NOW + 3_600_000 })
})

test('an invoice is shown if it was made within ten minutes, by any clock, and lives for a minute to a day', () => {
  for (const fields of [
    { timestamp: SECONDS - 600 },
    { timestamp: SECONDS + 600 },
    { expirySeconds: 60 },
    { expirySeconds: 86_400 },
  ]) {
    assert.equal(check(anInvoice(fields)).paymentHash, HASH, JSON.stringify(fields))
  }
})

test('an invoice is not shown where it is not what was asked for, or not in time', () => {
  const table: [fields: Parameters<typeof anInvoice>[0], message: string][] = [
    [{ network: 'mainnet' }, 'the invoice is for mainnet, not regtest'],
    [{ amountMsat: null }, 'the invoice leaves the amount open'],
    [{ amountMsat: 49_999 }, 'the invoice is over another sum'],
    [{ amountMsat: 50_001 }, 'the invoice is over another sum'],
    [{ timestamp: SECONDS - 601 }, 'the invoice was not made just now'],
    [{ timestamp: SECONDS + 601 }, 'the invoice was not made just now'],
    [{ expirySeconds: 59 }, 'the invoice expires too soon'],
    [{ timestamp: SECONDS - 500, expirySeconds: 559 }, 'the invoice expires too soon'],
    [{ expirySeconds: 86_401 }, 'the invoice lives for too long'],
  ]
  for (const [fields, message] of table) {
    assert.throws(
      () => check(anInvoice(fields)),
      (error) => {
        assert.ok(error instanceof LnurlError)
        assert.equal(error.message, message)
        return true
      },
    )
  }
  assert.throws(
    () => check('lnbcrt1'),
    (error) =>
      error instanceof LnurlError &&
      /^the invoice cannot be used: ./.test(error.message) &&
      error.cause instanceof InvalidInvoice,
  )
})
