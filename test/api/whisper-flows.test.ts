import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { parseWhisperCode, sealWhisper } from '../../src/client/index.ts'
import { utf8, utf8Text } from '../../src/lib/bytes.ts'
import { parseChallenges } from '../../src/protocol/auth-params.ts'
import { l402Challenges, serialiseL402Credential } from '../../src/protocol/l402.ts'
import { paymentChallenges, serialisePaymentCredential } from '../../src/protocol/payment-auth.ts'
import { startServer } from '../support/server.ts'
import {
  type Answer,
  aQuote,
  assertNoRoom,
  delivered,
  mayflyError,
  type Purchase,
  purchase,
  REUSED,
  read,
  short,
  stored,
} from '../support/whisper.ts'

test('a stranger shares a secret, and its reader opens it', async (t) => {
  const server = await startServer(t)
  const shared = await server.mayfly.buyWhisper({
    planId: 'spark',
    data: utf8('the door code is 4711'),
    name: 'door.txt',
    mediaType: 'text/plain',
    readLimit: 1,
    onInvoice: ({ bolt11 }) => server.pay(bolt11),
  })
  const code = parseWhisperCode(shared.code)
  assert.deepEqual(
    [shared.product, shared.publicId, shared.readToken, code?.hasPassword],
    ['whisper', code?.publicId, code?.readToken, false],
  )
  const opened = await server.mayfly.readWhisper(`  ${shared.code}\n`)
  assert.deepEqual(
    [utf8Text(opened.data), opened.name, opened.mediaType],
    ['the door code is 4711', 'door.txt', 'text/plain'],
  )
  await assert.rejects(server.mayfly.readWhisper(shared.code), mayflyError('not found', 404))
})

test('a password is asked for before a read is spent, and the service sees neither', async (t) => {
  const server = await startServer(t)
  const shared = await server.mayfly.buyWhisper({
    planId: 'spark',
    data: utf8('the door code is 4711'),
    password: 'seven bees',
    readLimit: 1,
    onInvoice: ({ bolt11 }) => server.pay(bolt11),
  })
  await assert.rejects(server.mayfly.readWhisper(shared.code), mayflyError('password needed', 0))
  const { data } = await server.mayfly.readWhisper(shared.code, 'seven bees')
  assert.equal(utf8Text(data), 'the door code is 4711')
  await assert.rejects(server.mayfly.readWhisper('x'), mayflyError('invalid share code', 0))
})

test('an interrupted purchase is taken up with the same sealed bytes and key', async (t) => {
  const server = await startServer(t)
  const purchase = {
    planId: 'spark',
    sealed: await sealWhisper({ data: utf8('once') }),
    idempotencyKey: randomUUID(),
  } as const
  const broken = server.mayfly.buyWhisper({
    ...purchase,
    async onInvoice({ bolt11 }) {
      await server.pay(bolt11)
      throw new Error('the battery died')
    },
  })
  await assert.rejects(broken, /battery/)
  const shared = await server.mayfly.buyWhisper({
    ...purchase,
    onInvoice: () => assert.fail('it was paid before'),
  })
  const { data } = await server.mayfly.readWhisper(shared.code)
  assert.equal(utf8Text(data), 'once')
})

suite('the flows', () => {
  test('the flow may change half-way: quoted natively, paid by an L402 wallet', async (t) => {
    const server = await startServer(t)
    const ask = { key: randomUUID(), body: randomBytes(500) }
    const quote = await aQuote(server, ask)
    const challenge = await purchase(server, inFlow(ask, 'l402'))
    assert.equal(challenge.status, 402)
    assert.equal(JSON.parse(challenge.text).paymentHash, quote.paymentHash)
    const authorization = l402(challenge, await server.pay(quote.bolt11))
    const answer = await purchase(server, { ...ask, headers: { authorization } })
    assert.equal(answer.status, 200)
    const { resource } = JSON.parse(answer.text)
    assert.deepEqual((await read(server, resource)).body, ask.body)
    assert.equal((await stored(server)).invoices, 1)
  })

  test('the flow may change half-way: challenged as a Payment, settled by a poll', async (t) => {
    const server = await startServer(t)
    const ask = { key: randomUUID(), body: randomBytes(500) }
    const challenge = await purchase(server, inFlow(ask, 'payment'))
    assert.match(String(challenge.headers['www-authenticate']), /^Payment /)
    const quote = await aQuote(server, ask)
    await server.pay(quote.bolt11)
    const whisper = await delivered(server, quote, ask.key)
    assert.deepEqual((await read(server, whisper)).body, ask.body)
  })

  test('a Payment credential buys it at once, with a receipt', async (t) => {
    const server = await startServer(t)
    const ask = { key: randomUUID(), body: randomBytes(500) }
    const challenge = await purchase(server, inFlow(ask, 'payment'))
    const { bolt11 } = await aQuote(server, ask)
    const authorization = payment(challenge, await server.pay(bolt11))
    const answer = await purchase(server, { ...ask, headers: { authorization } })
    assert.equal(answer.status, 200)
    assert.ok(answer.headers['payment-receipt'])
    const { resource } = JSON.parse(answer.text)
    assert.deepEqual((await read(server, resource)).body, ask.body)
  })

  test('a credential pays for its own body alone', async (t) => {
    const server = await startServer(t)
    const ask = { key: randomUUID(), body: randomBytes(500) }
    const challenge = await purchase(server, inFlow(ask, 'l402'))
    const { bolt11 } = await aQuote(server, ask)
    const headers = { authorization: l402(challenge, await server.pay(bolt11)) }
    const otherBody = { ...ask, body: randomBytes(500), headers }
    assert.deepEqual(short(await purchase(server, otherBody)), REUSED)
    const other = await purchase(server, { ...otherBody, key: randomUUID() })
    assert.ok(other.status === 401 || other.status === 402, String(other.status))
    assert.notEqual(JSON.parse(other.text).paymentHash, JSON.parse(challenge.text).paymentHash)
    assert.equal((await purchase(server, { ...ask, headers })).status, 200)
  })

  test('what finds no room is refused in every flow, without a challenge', async (t) => {
    const server = await startServer(t, { MAYFLY_UNPAID_BYTES: '40,40' })
    for (const protocol of ['payment', 'l402']) {
      const answer = await purchase(server, inFlow({}, protocol))
      assertNoRoom(answer, protocol)
      assert.equal(answer.headers['www-authenticate'], undefined)
    }
  })
})

const inFlow = (ask: Purchase, protocol: string): Purchase => ({
  ...ask,
  headers: { 'x-payment-protocol': protocol },
})

const challenges = ({ headers }: Answer) =>
  parseChallenges([String(headers['www-authenticate'])]) ?? []

function l402(answer: Answer, preimage: string): string {
  const [challenge] = l402Challenges(challenges(answer))
  return serialiseL402Credential({ macaroon: challenge?.macaroon ?? '', preimage })
}

function payment(answer: Answer, preimage: string): string {
  const [challenge] = paymentChallenges(challenges(answer))
  return serialisePaymentCredential({
    challenge: challenge ?? assert.fail(),
    payload: { preimage },
  })
}
