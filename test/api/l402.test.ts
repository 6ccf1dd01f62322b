import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { base64, base64Bytes, hex, utf8, utf8Text } from '../../src/lib/bytes.ts'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import { hmacSha256 } from '../../src/protocol/hmac.ts'
import { decodeMacaroon, encodeMacaroon, type Macaroon } from '../../src/protocol/macaroon.ts'
import { books, macaroonOf, purchase, quoteOf, SPARK } from '../support/buying.ts'
import {
  assertBareRefusal,
  assertError,
  BASE_URL,
  capabilityOf,
  L402,
  openOrderVia,
  paidOrderVia,
  startShop,
  use,
} from '../support/wallet-flow.ts'
import { walletFlowContract } from './wallet-flow.ts'

walletFlowContract('L402', L402)

test('an L402 402 has exactly the documented challenge', async (t) => {
  const server = await startShop(t)
  const answer = await purchase(server, {
    protocol: 'l402',
    target: '/api/payments/catch?from=test',
  })
  assert.equal(answer.status, 402)
  const { bolt11, paymentHash, orderId } = quoteOf(answer)
  const invoice = decodeInvoice(bolt11)
  assert.equal(invoice.paymentHash, paymentHash)
  const macaroon = macaroonOf(answer)
  assert.deepEqual(answer.lines('www-authenticate'), [
    `L402 macaroon="${macaroon}", invoice="${bolt11}"`,
  ])
  assert.deepEqual(answer.lines('content-type'), ['application/json; charset=utf-8'])
  assert.deepEqual(answer.lines('cache-control'), ['no-store'])
  assert.deepEqual(JSON.parse(answer.text), {
    error: 'payment required',
    scheme: 'L402',
    macaroon,
    invoice: bolt11,
    orderId,
    product: 'catch',
    planId: 'spark',
    amountSats: 100,
    priceSats: 100,
    bolt11,
    paymentHash,
    expiresAt: `${new Date(invoice.expiresAt).toISOString().slice(0, 19)}Z`,
    network: 'regtest',
  })
  assert.match(macaroon, /^[A-Za-z0-9+/]+={0,2}$/)
  assert.equal(macaroon.length % 4, 0, 'padded, since some clients decode nothing else')
  const { location, identifier, caveats } = read(macaroon)
  assert.equal(utf8Text(location), BASE_URL)
  assert.equal(identifier.length, 66)
  assert.equal(hex(identifier.slice(0, 34)), `0000${paymentHash}`)
  const day = 24 * 60 * 60
  assert.deepEqual(caveats.map(utf8Text), [
    'services=catch:0',
    // The quote, the capability, and the 30 days that the order's row stays.
    `catch_valid_until=${invoice.expiresAt / 1000 + day + 31 * day}`,
    `aud=${BASE_URL}`,
    `order=${orderId}`,
    'plan=spark',
    'method=POST',
    'route=/api/payments/catch?from=test',
    `body_sha256=${createHash('sha256').update(SPARK).digest('hex')}`,
  ])
  assert.ok(answer.lines('www-authenticate').join().length < 2048)
})

test('an L402 credential selects its flow by itself, under its old name too', async (t) => {
  const server = await startShop(t)
  for (const authorization of ['L402 x', 'l402 x', 'LSAT x', 'lsat x', 'L402', 'LSAT ']) {
    for (const headers of [
      {},
      { 'x-payment-protocol': 'payment' },
      { 'accept-payment': 'lightning/charge' },
    ]) {
      const answer = await purchase(server, { authorization, headers })
      assert.equal(answer.status, 401, authorization)
      assert.match(answer.lines('www-authenticate').join(), /^L402 macaroon="/)
    }
  }
})

test('any spelling of an L402 credential is taken', async (t) => {
  const server = await startShop(t)
  // Long enough to have both letters that the alphabets of base64 differ in, and padding.
  const order = await openOrderVia(server, L402, { target: '/api/payments/catch?~~~~??>>~~~' })
  const { key, preimage, authorization } = order
  const macaroon = macaroonOf(order.challenge)
  const urlSafe = macaroon.replaceAll('+', '-').replaceAll('/', '_')
  const rows: Record<string, string | string[]> = {
    'as issued': authorization,
    'the other alphabet without padding': `L402 ${urlSafe.replaceAll('=', '')}:${preimage}`,
    'both names at once, as some clients do, and the preimage in either case': [
      `LSAT ${macaroon}:${preimage}`,
      `L402 ${macaroon}:${preimage.toUpperCase()}`,
    ],
    'beside another scheme': ['Bearer x', authorization],
    'the preimage as a caveat, as some clients do': `L402 ${append(macaroon, `preimage=${preimage}`)}:${preimage}`,
    'a narrower caveat that holds': `L402 ${append(macaroon, 'services=catch:0', 'plan=spark')}:${preimage}`,
  }
  const texts = new Set<string>()
  for (const [note, spelled] of Object.entries(rows)) {
    const answer = await purchase(server, { ...order.ask, key, authorization: spelled })
    assert.equal(answer.status, 200, note)
    assert.deepEqual(answer.lines('payment-receipt'), [], note)
    texts.add(answer.text)
  }
  assert.equal(texts.size, 1)
})

test('a credential that never was ours is 401, with a challenge that can be paid', async (t) => {
  const server = await startShop(t)
  const order = await openOrderVia(server, L402)
  const other = await openOrderVia(server, L402)
  const { key, preimage, authorization } = order
  const macaroon = macaroonOf(order.challenge)
  const parts = read(macaroon)
  const pay = (spelled: string): string => `L402 ${spelled}:${preimage}`
  // test/vectors/l402.json has every other way to be wrong.
  const rows: [note: string, authorization: string | string[]][] = [
    ['nothing', 'L402'],
    ['a macaroon alone', `L402 ${macaroon}`],
    ['no base64', pay('!!!!')],
    ['two credentials in a line', `${authorization}, ${authorization}`],
    ['two orders at once', [authorization, other.authorization]],
    ['a good line and a bad one', [authorization, 'LSAT bad']],
    ['no caveats', pay(base64(encodeMacaroon({ ...parts, caveats: [] })))],
    ['a token of nobody', pay(forged(parts))],
    ['the preimage of another order', `L402 ${macaroon}:${other.preimage}`],
    ['a caveat that we do not know', pay(append(macaroon, 'ip=127.0.0.1'))],
    ['another plan appended', pay(append(macaroon, 'plan=long'))],
    ['another order appended', pay(append(macaroon, `order=${other.orderId}`))],
    ['a longer life appended', pay(append(macaroon, 'catch_valid_until=99999999999'))],
  ]
  const [field] = order.challenge.lines('www-authenticate')
  const quoted = JSON.parse(order.challenge.text)
  for (const [note, spelled] of rows) {
    const answer = await purchase(server, { key, authorization: spelled })
    assert.equal(answer.status, 401, `${note}: ${answer.text}`)
    assert.deepEqual(answer.lines('www-authenticate'), [field], note)
    assert.deepEqual(answer.lines('content-type'), ['application/json; charset=utf-8'], note)
    assert.deepEqual(answer.lines('cache-control'), ['no-store'], note)
    const error = 'invalid L402 credential'
    assert.deepEqual(JSON.parse(answer.text), { ...quoted, error }, note)
  }
  assert.deepEqual(await books(server), { orders: 2, invoices: 2, settled: 0, inboxes: 0 })
  capabilityOf(await purchase(server, { key, authorization }))
  capabilityOf(await purchase(server, { key: other.key, authorization: other.authorization }))
})

test('a genuine credential that is not for this request shows its payer nothing to pay', async (t) => {
  const server = await startShop(t)
  const order = await openOrderVia(server, L402)
  const { key, preimage, authorization } = order
  const macaroon = macaroonOf(order.challenge)
  const narrowed = (...caveats: string[]): string =>
    `L402 ${append(macaroon, ...caveats)}:${preimage}`
  const rows: [note: string, authorization: string | string[]][] = [
    ['one whose holder has let it run out', narrowed('catch_valid_until=1')],
    ['one that its holder narrowed to another service', narrowed('services=whisper:0')],
    [
      'the same, under both names',
      [narrowed('catch_valid_until=1').replace('L402', 'LSAT'), narrowed('catch_valid_until=1')],
    ],
  ]
  for (const [note, spelled] of rows) {
    assertBareRefusal(await purchase(server, { key, authorization: spelled }), L402, note)
  }
  assert.deepEqual(await books(server), { orders: 1, invoices: 1, settled: 1, inboxes: 1 })
  capabilityOf(await purchase(server, { key, authorization }))
})

test('a genuine credential of a paid order, to which a caveat was added that nobody knows, is a bare 401', async (t) => {
  const server = await startShop(t)
  const { key, challenge, preimage } = await paidOrderVia(server, L402)
  const authorization = `L402 ${append(macaroonOf(challenge), 'moon=full')}:${preimage}`
  for (const one of [key, randomUUID()]) {
    assertBareRefusal(await purchase(server, { key: one, authorization }), L402, one)
  }
  assert.equal((await books(server)).orders, 1)
})

test('a credential of another purchase is 402, so that its client recovers', async (t) => {
  const server = await startShop(t)
  const order = await openOrderVia(server, L402)
  const long = await paidOrderVia(server, L402, { body: '{"planId":"long"}' })
  const used = await paidOrderVia(server, L402)
  await use(server, await purchase(server, used.ask))
  const [field] = order.challenge.lines('www-authenticate')
  for (const [note, authorization] of [
    ["another plan's", long.authorization],
    ['one whose capability is used', used.authorization],
  ] as const) {
    const answer = await purchase(server, { key: order.key, authorization })
    assert.equal(answer.status, 402, note)
    assert.deepEqual(answer.lines('www-authenticate'), [field], note)
    assert.equal(answer.text, order.challenge.text, note)
  }
})

test('a target too long to be bound is refused before there is an order', async (t) => {
  const server = await startShop(t)
  const target = (length: number): string =>
    `/api/payments/catch?${'a'.repeat(length - '/api/payments/catch?'.length)}`
  const long = await purchase(server, { protocol: 'l402', target: target(2049) })
  assertError(long, '400 invalid query')
  assert.deepEqual(await books(server), { orders: 0, invoices: 0, settled: 0, inboxes: 0 })
  const order = await paidOrderVia(server, L402, { target: target(2048) })
  capabilityOf(await purchase(server, order.ask))
})

function read(macaroon: string): Macaroon {
  const decoded = decodeMacaroon(base64Bytes(macaroon) ?? new Uint8Array())
  assert.ok(decoded)
  return decoded
}

/** What any holder of a token can do: narrow it by caveats. */
function append(macaroon: string, ...caveats: string[]): string {
  const parts = read(macaroon)
  const added = caveats.map(utf8)
  return base64(
    encodeMacaroon({
      ...parts,
      caveats: [...parts.caveats, ...added],
      signature: added.reduce((key, caveat) => hmacSha256(key, caveat), parts.signature),
    }),
  )
}

/** All the right words, signed by somebody else. */
function forged(parts: Macaroon): string {
  let signature = hmacSha256(
    hmacSha256(utf8('macaroons-key-generator'), utf8('a root key of ours, surely')),
    parts.identifier,
  )
  for (const caveat of parts.caveats) signature = hmacSha256(signature, caveat)
  return base64(encodeMacaroon({ ...parts, signature }))
}
