import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { inspect } from 'node:util'
import {
  openWhisper,
  parseWhisperCode,
  UnopenedWhisper,
  UnreadableWhisper,
} from '../../src/client/index.ts'
import { utf8, utf8Text } from '../../src/lib/bytes.ts'
import { preimageOf } from '../support/buying.ts'
import { temporaryFolder } from '../support/folder.ts'
import {
  l402Authorization,
  l402Challenges,
  paymentAuthorization,
  paymentChallenges,
} from '../support/payer.ts'
import { startServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { query } from '../support/store.ts'
import {
  type Answer,
  assertNoRoom,
  mayflyError,
  openWhisperOrder,
  type Purchase,
  purchaseWhisper,
  read,
  refusal,
  short,
} from '../support/whisper.ts'

suite('a whisper in every flow', () => {
  const theServer = shareServer()

  test('a stranger shares a secret, and its reader opens it', async () => {
    const server = await theServer()
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

  test('a password is asked for before a read is spent, and the service sees neither', async () => {
    const server = await theServer()
    const shared = await server.mayfly.buyWhisper({
      planId: 'spark',
      data: utf8('the door code is 4711'),
      password: 'seven bees',
      readLimit: 1,
      onInvoice: ({ bolt11 }) => server.pay(bolt11),
    })
    await assert.rejects(server.mayfly.readWhisper(shared.code), mayflyError('password needed', 0))
    const failed = await server.mayfly
      .readWhisper(shared.code, 'seven wasps')
      .catch((error: unknown) => error)
    // The only read is spent, and nothing is lost.
    assert.ok(failed instanceof UnopenedWhisper && failed instanceof UnreadableWhisper)
    assert.doesNotMatch(inspect(failed, { showHidden: true, depth: 9 }), /Uint8Array/)
    await assert.rejects(failed.open('seven ants'), UnopenedWhisper)
    const { data } = await failed.open('seven bees')
    const key = parseWhisperCode(shared.code)?.key ?? new Uint8Array()
    const again = await openWhisper(failed.ciphertext, key, 'seven bees')
    assert.deepEqual(again.data, data)
    assert.equal(utf8Text(data), 'the door code is 4711')
    await assert.rejects(server.mayfly.readWhisper('x'), mayflyError('invalid share code', 0))
  })

  suite('the flows', () => {
    test('a paid whisper whose plan became smaller is measured by the plan that it was sold under', async (t) => {
      const environment: Record<string, string> = { MAYFLY_BASE_URL: 'http://localhost:8402' }
      const server = await startServer(t, environment)
      const [native, own, other] = [1, 2, 3].map(() => ({
        key: randomUUID(),
        body: randomBytes(500),
      })) as [Sold, Sold, Sold]
      const challenged = async (ask: Sold, protocol: string): Promise<Answer> =>
        purchaseWhisper(server, inFlow(ask, protocol))
      const { bolt11 } = await openWhisperOrder(server, native)
      const [mine, theirs] = [await challenged(own, 'l402'), await challenged(other, 'payment')]
      environment.MAYFLY_CATALOG = join(await temporaryFolder(t), 'plans.json')
      const small = { maxCiphertextBytes: 64 }
      await writeFile(
        environment.MAYFLY_CATALOG,
        JSON.stringify({ whisper: { spark: small, standard: small, long: small } }),
      )
      await server.restart()
      const tooLarge = await purchaseWhisper(server, { body: randomBytes(500) })
      assert.deepEqual(short(tooLarge), refusal('ciphertext too large'))

      await server.pay(bolt11)
      const authorizations = [
        l402(mine, await server.pay(JSON.parse(mine.text).bolt11)),
        payment(theirs, await server.pay(JSON.parse(theirs.text).bolt11)),
      ]
      for (const ask of [
        native,
        { ...own, headers: { authorization: authorizations[0] } },
        { ...other, key: randomUUID(), headers: { authorization: authorizations[1] } },
      ]) {
        server.clock.advance(1_000)
        const answer = await purchaseWhisper(server, ask)
        assert.equal(answer.status, 200, answer.text)
        const { resource } = JSON.parse(answer.text)
        assert.deepEqual((await read(server, resource)).body, ask.body)
      }
      const chunked = { 'content-length': undefined, 'transfer-encoding': 'chunked' }
      const repeat = await purchaseWhisper(server, { ...native, headers: chunked })
      assert.equal(repeat.status, 404, 'it has been read')
    })

    test('a whisper that is owed because its bytes are gone is whole again by proof and its body', async (t) => {
      const server = await startServer(t)
      const ask = { key: randomUUID(), body: randomBytes(500) }
      const { orderId, paymentHash } = JSON.parse(
        (await purchaseWhisper(server, inFlow(ask, 'l402'))).text,
      )
      server.clock.advance(16 * 60_000)
      await purchaseWhisper(server, inFlow(ask, 'l402'))
      const proof = { 'payment-preimage': await preimageOf(server, paymentHash) }
      // A poll proves the payment, and has no bytes to give.
      const polled = await fetch(`${server.url}/api/payments/${orderId}`, { headers: proof })
      assert.equal(polled.status, 503)
      const state = 'select state from purchase_order where order_id = $1'
      assert.deepEqual(await query(server, state, orderId), [{ state: 'paid_unfulfilled' }])
      const unproven = await purchaseWhisper(server, ask)
      assert.equal(unproven.status, 503, 'the bytes alone prove nothing')

      const answers = await Promise.all(
        Array.from({ length: 4 }, () => purchaseWhisper(server, { ...ask, headers: proof })),
      )
      for (const answer of answers) assert.equal(answer.status, 200, answer.text)
      assert.equal(new Set(answers.map(({ text }) => text)).size, 1, 'one capability')
      const { resource } = JSON.parse(answers[0]?.text ?? '')
      assert.deepEqual((await read(server, resource)).body, ask.body)
    })

    test('a body that finds no room is refused in every flow, without a challenge', async (t) => {
      const server = await startServer(t, { MAYFLY_UNPAID_BYTES: '40,40' })
      for (const protocol of ['payment', 'l402']) {
        const answer = await purchaseWhisper(server, inFlow({}, protocol))
        assertNoRoom(answer, protocol)
        assert.equal(answer.headers['www-authenticate'], undefined)
      }
    })
  })
})

type Sold = { key: string; body: Buffer }

const inFlow = (ask: Purchase, protocol: string): Purchase => ({
  ...ask,
  headers: { 'x-payment-protocol': protocol },
})

const challenges = ({ headers }: Answer) => [String(headers['www-authenticate'])]

function l402(answer: Answer, preimage: string): string {
  const [challenge] = l402Challenges(challenges(answer))
  return l402Authorization({ macaroon: challenge?.macaroon ?? '', preimage })
}

function payment(answer: Answer, preimage: string): string {
  const [challenge] = paymentChallenges(challenges(answer))
  return paymentAuthorization({
    challenge: challenge ?? assert.fail(),
    payload: { preimage },
  })
}
