import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { base64, base64Bytes, hex, utf8, utf8Text } from '../../src/lib/bytes.ts'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import { hmacSha256 } from '../../src/protocol/hmac.ts'
import { decodeMacaroon, encodeMacaroon, type Macaroon } from '../../src/protocol/macaroon.ts'
import { books, macaroonOf, purchase, quoteOf, SPARK } from '../support/buying.ts'
import { until } from '../support/until.ts'
import {
  assertBareRefusal,
  assertError,
  BASE_URL,
  capabilityOf,
  HOUR,
  L402,
  openOrderVia,
  paidOrderVia,
  startShop,
  use,
} from '../support/wallet-flow.ts'
import { walletFlowContract } from './wallet-flow.ts'
import { lateWalletFlowContract } from './wallet-flow-later.ts'

walletFlowContract('L402', L402)
lateWalletFlowContract('L402', L402)

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

test('tokens of different orders have nothing in common but their form', async (t) => {
  const server = await startShop(t)
  const [one, other] = [await openOrderVia(server, L402), await openOrderVia(server, L402)]
  const [a, b] = [read(macaroonOf(one.challenge)), read(macaroonOf(other.challenge))]
  assert.notDeepEqual(a.identifier.slice(34), b.identifier.slice(34))
  assert.notDeepEqual(a.signature, b.signature)
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
  const echoed = append(macaroon, `preimage=${preimage}`)
  const rows: Record<string, string | string[]> = {
    'as issued': authorization,
    'the old name': `LSAT ${macaroon}:${preimage}`,
    'lower case': `l402 ${macaroon}:${preimage}`,
    'a preimage in upper case': `L402 ${macaroon}:${preimage.toUpperCase()}`,
    'more spaces': `L402   ${macaroon}:${preimage}  `,
    'the other alphabet': `L402 ${urlSafe}:${preimage}`,
    'no padding': `L402 ${macaroon.replaceAll('=', '')}:${preimage}`,
    'the other alphabet without padding': `L402 ${urlSafe.replaceAll('=', '')}:${preimage}`,
    'both names at once, as some clients do': [
      `LSAT ${macaroon}:${preimage}`,
      `L402 ${macaroon}:${preimage}`,
    ],
    'both, and the preimage in either case': [
      `LSAT ${macaroon}:${preimage}`,
      `L402 ${macaroon}:${preimage.toUpperCase()}`,
    ],
    twice: [authorization, authorization],
    'beside another scheme': ['Bearer x', authorization],
    'the preimage as a caveat, as some clients do': `L402 ${echoed}:${preimage}`,
    'the same caveat in upper case': `L402 ${append(macaroon, `preimage=${preimage.toUpperCase()}`)}:${preimage}`,
    'another location, which is not signed': `L402 ${relocated(macaroon)}:${preimage}`,
    'a narrower caveat that holds': `L402 ${append(macaroon, 'services=catch:0', 'plan=spark')}:${preimage}`,
    "another service's timeout": `L402 ${append(macaroon, 'whisper_valid_until=1')}:${preimage}`,
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
  const bytes = base64Bytes(macaroon) ?? new Uint8Array()
  const parts = read(macaroon)
  const pay = (spelled: string): string => `L402 ${spelled}:${preimage}`
  const write = (changes: Partial<Macaroon>): string =>
    pay(base64(encodeMacaroon({ ...parts, ...changes })))
  const flipped = Uint8Array.from(parts.signature, (byte, i) => (i === 31 ? byte ^ 1 : byte))
  const changed = (from: string, to: string): string =>
    write({
      caveats: parts.caveats.map((caveat) => utf8((utf8Text(caveat) ?? '').replace(from, to))),
    })
  const thirdParty = Buffer.from(bytes)
  const version1 = Buffer.from('001dlocation localhost\n').toString('base64')
  const rows: [note: string, authorization: string | string[]][] = [
    ['nothing', 'L402'],
    ['a macaroon alone', `L402 ${macaroon}`],
    ['a macaroon and a colon', `L402 ${macaroon}:`],
    ['a preimage alone', `L402 :${preimage}`],
    ['a short preimage', `L402 ${macaroon}:${preimage.slice(2)}`],
    ['a long preimage', `L402 ${macaroon}:${preimage}00`],
    ['a preimage that is not hex', `L402 ${macaroon}:${'xy'.repeat(32)}`],
    ['no base64', pay('!!!!')],
    ['base64 of nothing known', pay('AAAA')],
    ['two macaroons', `L402 ${macaroon},${macaroon}:${preimage}`],
    ['two credentials in a line', `${authorization}, ${authorization}`],
    ['parameters', `L402 macaroon="${macaroon}", preimage="${preimage}"`],
    ['two orders at once', [authorization, other.authorization]],
    ['one token and two preimages', [authorization, `L402 ${macaroon}:${other.preimage}`]],
    ['a good line and a bad one', [authorization, 'LSAT bad']],
    ['five lines', Array.from({ length: 5 }, () => authorization)],
    ['more than a macaroon may have', pay('A'.repeat(6_000))],
    ['version 1', pay(version1)],
    ['another version', pay(base64(Uint8Array.from([3, ...bytes.slice(1)])))],
    ['a byte after it', pay(base64(Uint8Array.from([...bytes, 0])))],
    ['a byte too few', pay(base64(bytes.slice(0, -1)))],
    ['a third-party caveat', pay(base64(withThirdParty(thirdParty)))],
    ['another signature', write({ signature: flipped })],
    ['no caveats', write({ caveats: [] })],
    ['a caveat less', write({ caveats: parts.caveats.slice(0, -1) })],
    ['caveats in another order', write({ caveats: parts.caveats.toReversed() })],
    ['another plan', changed('plan=spark', 'plan=long')],
    ['a longer life', changed('valid_until=1', 'valid_until=2')],
    [
      'an identifier of another version',
      write({
        identifier: Uint8Array.from([0, 1, ...parts.identifier.slice(2)]),
      }),
    ],
    ['a longer identifier', write({ identifier: Uint8Array.from([...parts.identifier, 0]) })],
    [
      "another payment's identifier",
      write({
        identifier: read(macaroonOf(other.challenge)).identifier,
      }),
    ],
    ['a token of nobody', pay(forged(parts))],
    ['the preimage of another order', `L402 ${macaroon}:${other.preimage}`],
    ['a preimage of nothing', `L402 ${macaroon}:${'00'.repeat(32)}`],
    ['a caveat that we do not know', pay(append(macaroon, 'ip=127.0.0.1'))],
    ['a caveat that is none', pay(append(macaroon, 'spark'))],
    ['a caveat without a condition', pay(append(macaroon, '=spark'))],
    ['spaces around a condition', pay(append(macaroon, 'plan = spark'))],
    ['another plan appended', pay(append(macaroon, 'plan=long'))],
    ['another route appended', pay(append(macaroon, 'route=/api/payments/pulse'))],
    ['another order appended', pay(append(macaroon, `order=${other.orderId}`))],
    ['a longer life appended', pay(append(macaroon, 'catch_valid_until=99999999999'))],
    ['a life that is no time', pay(append(macaroon, 'catch_valid_until=soon'))],
    ['another preimage as a caveat', pay(append(macaroon, `preimage=${other.preimage}`))],
    [
      'an unknown caveat before one that is merely violated',
      pay(append(macaroon, 'ip=127.0.0.1', 'catch_valid_until=1')),
    ],
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

test('a credential of an order that is over says so, and asks for no money', async (t) => {
  const server = await startShop(t)
  const { key, authorization } = await paidOrderVia(server, L402)
  // Its life begins here.
  await until('the settlement', () => server.logged.some((line) => /"order.settled"/.test(line)))
  server.clock.advance(23 * HOUR)
  capabilityOf(await purchase(server, { key, authorization }))
  server.clock.advance(2 * HOUR)
  assertError(await purchase(server, { key, authorization }), '404 already delivered')
  server.clock.advance(28 * 24 * HOUR)
  assertError(await purchase(server, { key, authorization }), '404 already delivered')
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

function relocated(macaroon: string): string {
  return base64(encodeMacaroon({ ...read(macaroon), location: utf8('https://elsewhere.example') }))
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

/** The macaroon with a caveat that another party would have to discharge. */
function withThirdParty(bytes: Uint8Array): Uint8Array {
  const end = bytes.length - 2 - 32 - 1
  const caveat = Uint8Array.from([1, 1, 0x78, 2, 1, 0x79, 4, 1, 0x7a, 0])
  return Uint8Array.from([...bytes.slice(0, end), ...caveat, ...bytes.slice(end)])
}
