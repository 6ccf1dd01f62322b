/** What is read in LND's JSON, field by field. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  madeInvoice,
  nodeInfo,
  seenInvoice,
  streamedInvoice,
} from '../../../src/lightning/lnd/answers.ts'
import { invoice, PAYMENT_HASH, settledHash, settlement } from '../../support/fake-lnd.ts'

type Fields = Record<string, unknown>

const malformed = (message: string) => ({
  name: 'NodeError',
  reason: 'malformed',
  message: `LND: ${message}`,
})

test('an invoice of LND is read with its hash, its state and the number of its settlement', () => {
  assert.deepEqual(seenInvoice(invoice({ state: 'SETTLED', settle_index: '7' })), {
    paymentHash: PAYMENT_HASH,
    state: 'settled',
    settleIndex: 7,
  })
  const largest = seenInvoice(invoice({ settle_index: String(Number.MAX_SAFE_INTEGER) }))
  assert.equal(largest.settleIndex, Number.MAX_SAFE_INTEGER)
})

test('an invoice of LND with a field that is missing, or wrong, is refused by the name of the field', () => {
  const table: [changes: Fields, message: string][] = [
    [{ r_hash: undefined }, 'r_hash is missing'],
    [{ r_hash: '???' }, 'r_hash is not 32 bytes'],
    [{ r_hash: Buffer.alloc(31).toString('base64') }, 'r_hash is not 32 bytes'],
    [{ r_hash: Buffer.alloc(33).toString('base64') }, 'r_hash is not 32 bytes'],
    [{ state: undefined }, 'state is missing'],
    [{ state: 'settled' }, 'an invoice is in an unknown state'],
    [{ settle_index: undefined }, 'settle_index is missing'],
    [{ settle_index: 7 }, 'settle_index is missing'],
    [{ settle_index: '-1' }, 'settle_index is not a count'],
    [{ settle_index: '1.5' }, 'settle_index is not a count'],
    [{ settle_index: 'seven' }, 'settle_index is not a count'],
    [{ settle_index: String(2 ** 53) }, 'settle_index is not a count'],
  ]
  for (const [changes, message] of table) {
    assert.throws(() => seenInvoice(invoice(changes)), malformed(message))
  }
})

test('an invoice that LND made is read with its hash', () => {
  const made = invoice({ payment_request: 'lnbcrt1' })
  assert.deepEqual(madeInvoice(made), { bolt11: 'lnbcrt1', paymentHash: PAYMENT_HASH })
  assert.throws(() => madeInvoice(invoice()), malformed('payment_request is missing'))
  assert.throws(() => madeInvoice({ ...made, r_hash: '' }), malformed('r_hash is not 32 bytes'))
})

test("a line of LND's stream is an invoice, or the error that ends the stream, which is no unreadable line", () => {
  assert.deepEqual(streamedInvoice(settlement(7)), {
    paymentHash: settledHash(7),
    state: 'settled',
    settleIndex: 7,
  })
  for (const error of ['{"error":{"code":2,"message":"shutting down"}}', '{"error":null}']) {
    assert.throws(() => streamedInvoice(error), {
      name: 'NodeError',
      reason: 'refused',
      message: 'LND: the invoice stream was ended',
    })
  }
  assert.throws(() => streamedInvoice('{}'), malformed('an answer is not an object'))
  assert.throws(() => streamedInvoice('{"result":[]}'), malformed('an answer is not an object'))
  assert.throws(() => streamedInvoice('{'), malformed('an answer is not JSON'))
})

test('an LND says its network, its key, and whether it is in sync', () => {
  const key = `02${'ab'.repeat(32)}`
  const chains = [{ chain: 'bitcoin', network: 'mainnet' }]
  for (const [synced_to_chain, synced] of [
    [true, true],
    [false, false],
    ['true', false],
    [undefined, false],
  ]) {
    const info = nodeInfo({ chains, synced_to_chain, identity_pubkey: key })
    assert.deepEqual(info, { network: 'mainnet', synced, nodeId: key })
  }
  for (const chains of [undefined, {}, { 0: { network: 'mainnet' } }, [], ['mainnet']]) {
    assert.throws(() => nodeInfo({ chains }), malformed('an answer is not an object'))
  }
  assert.throws(() => nodeInfo({ chains: [{}] }), malformed('network is missing'))
})
