import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { importJWK, jwtVerify } from 'jose'
import { type Db, StoreAway, StoreError } from '../../src/db/db.ts'
import type { IntentRow } from '../../src/gate/store.ts'
import { aGate, authorized, pay, URL_OF_GATE } from '../support/gate.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

describe('a proof', () => {
  test('50 proofs at once get 50 equal receipts for one credit', async (t) => {
    const world = await aGate(t)
    const intent = await world.quoted()
    const preimage = world.wallet.pay(intent.bolt11)
    const other = await world.another()
    const proven = await Promise.all(
      Array.from({ length: 50 }, (_, i) => {
        const service = i % 2 === 0 ? world.service : other
        return authorized(service.prove(intent, preimage))
      }),
    )
    const [first] = proven
    for (const receipt of proven) assert.deepEqual(receipt, first)
    assert.equal((await world.project()).credits, 9)
  })

  test('after a step back of the clock no intent is made and none is authorized, and what was proven is honoured later', async (t) => {
    const world = await aGate(t)
    const [polled, proven] = [await world.quoted(), await world.quoted()]
    const authorizedBefore = await world.quoted()
    await pay(world, authorizedBefore)
    const preimage = world.wallet.pay(proven.bolt11)
    world.wallet.pay(polled.bolt11)
    const asked = world.lnurl.requests.length
    world.clock.hasGoneBack = () => true
    assert.equal((await world.open()).kind, 'checkout unavailable')
    assert.equal(world.lnurl.requests.length, asked, 'no provider is asked for an invoice')
    await assert.rejects(world.service.poll(polled), StoreAway)
    await assert.rejects(world.service.prove(proven, preimage), StoreAway)
    const current = await world.intentRow(authorizedBefore.intent_id)
    assert.equal((await world.service.poll(current)).kind, 'authorized', 'it was settled before')
    assert.equal((await world.project()).credits, 9)
    world.clock.hasGoneBack = () => false
    world.clock.advance(MINUTE)
    assert.equal((await world.service.prove(proven, preimage)).kind, 'authorized')
    const again = await world.intentRow(polled.intent_id)
    assert.equal((await world.service.poll(again)).kind, 'authorized')
    assert.equal((await world.open()).kind, 'quote')
  })

  test('a proof is honoured however late, while the provider is asked until ten minutes past the invoice', async (t) => {
    const world = await aGate(t)
    const [early, late] = [await world.quoted(), await world.quoted()]
    const [first, second] = [early, late].map(({ bolt11 }) => world.wallet.pay(bolt11))
    world.clock.advance(early.honoured_until - world.clock.now() - 1_000)
    assert.equal((await world.service.prove(early, first ?? '')).kind, 'authorized')
    world.clock.advance(2_000)
    const asked = world.lnurl.requests.length
    assert.equal((await world.service.poll(late)).kind, 'pending')
    assert.equal(world.lnurl.requests.length, asked)
    world.clock.advance(7 * DAY)
    await world.service.purge(world.clock.now())
    const receipt = await authorized(world.service.prove(late, second ?? ''))
    assert.equal(receipt.expires_at - world.clock.now() > 4 * MINUTE, true)
    assert.equal((await world.project()).credits, 8)
  })

  test('a proof in the last millisecond is not late, nor is a poll, which then says when to come back', async (t) => {
    const world = await aGate(t)
    const [paid, open] = [await world.quoted(), await world.quoted()]
    world.clock.now = () => paid.honoured_until
    await pay(world, paid)
    const last = { ...open, honoured_until: paid.honoured_until }
    const poll = async (intent: IntentRow) => {
      const polled = await world.service.poll(intent)
      return polled.kind === 'pending' ? polled.retryAfterSeconds : polled.kind
    }
    assert.equal(await poll(last), 2)
    world.clock.now = () => open.honoured_until + 1
    assert.equal(await poll(open), null)
  })

  test('a proof is honoured for a project that was suspended meanwhile, and nothing new is offered', async (t) => {
    const world = await aGate(t)
    const intent = await world.quoted()
    await world.projects.suspend(world.projectId)
    assert.deepEqual(await world.open(), { kind: 'invalid project capability' })
    assert.equal((await pay(world, intent)).credits_remaining, 9)
  })

  test('a proof whose answer was lost gets the receipt that was written', async (t) => {
    const world = await aGate(t)
    const intent = await world.quoted()
    const preimage = world.wallet.pay(intent.bolt11)
    const dying = await world.another({ db: losing(world.db) })
    await assert.rejects(dying.prove(intent, preimage), StoreError)
    const receipt = await authorized(world.service.prove(intent, preimage))
    assert.deepEqual(await authorized((await world.another()).poll(intent)), receipt)
    assert.equal((await world.project()).credits, 9)
  })
})

describe('a poll', () => {
  test('a poll asks the provider less and less often', async (t) => {
    const world = await aGate(t)
    const { intent_id: intentId } = await world.quoted()
    const waits: (number | null)[] = []
    for (let i = 0; i < 7; i++) {
      const outcome = await world.service.poll(await world.intentRow(intentId))
      assert.equal(outcome.kind, 'pending')
      const wait = outcome.kind === 'pending' ? outcome.retryAfterSeconds : null
      waits.push(wait)
      // Too early: the answer comes from the store.
      const early = await world.service.poll(await world.intentRow(intentId))
      assert.equal(early.kind === 'pending' && early.retryAfterSeconds, wait)
      world.clock.advance((wait ?? 0) * 1_000)
    }
    assert.deepEqual(waits, [2, 3, 5, 8, 15, 15, 15])
    assert.equal(world.lnurl.requests.filter(({ step }) => step === 'verify').length, 7)
  })

  test('50 polls at once ask the provider once', async (t) => {
    const world = await aGate(t)
    const intent = await world.quoted()
    await Promise.all(Array.from({ length: 50 }, () => world.service.poll(intent)))
    assert.equal(world.lnurl.requests.filter(({ step }) => step === 'verify').length, 1)
  })

  test('a poll asks nobody where the provider cannot tell', async (t) => {
    const world = await aGate(t)
    world.lnurl.answers.invoice = async (_url, _response, usual) => ({
      ...(await usual()),
      verify: undefined,
    })
    const intent = await world.quoted()
    assert.equal(intent.verify_url, null)
    assert.deepEqual(await world.service.poll(intent), {
      kind: 'pending',
      intent,
      retryAfterSeconds: null,
    })
    assert.equal((await pay(world, intent)).verified_by, 'preimage')
  })

  test('a poll authorizes nothing where the provider contradicts itself, and the preimage is still a proof', async (t) => {
    const world = await aGate(t)
    const intent = await world.quoted()
    world.wallet.pay(intent.bolt11)
    world.lnurl.answers.verify = () => ({ status: 'OK', settled: true, pr: 'lnbcrt1other' })
    assert.equal((await world.service.poll(intent)).kind, 'pending')
    assert.equal((await world.project()).credits, 10)
    assert.equal((await pay(world, intent)).verified_by, 'preimage')
  })

  test('a poll stays pending while the provider is down, and says so in the log', async (t) => {
    const world = await aGate(t)
    const intent = await world.quoted()
    world.wallet.pay(intent.bolt11)
    world.lnurl.answers.verify = (_url, response) => void response.writeHead(502).end('<html>')
    assert.equal((await world.service.poll(intent)).kind, 'pending')
    const { reason, ...told }: Record<string, unknown> = world.logged.at(-1) ?? {}
    assert.match(String(reason), /not a JSON object/)
    assert.deepEqual(told, {
      event: 'gate.verify_failed',
      intentId: intent.intent_id,
      paymentHash: intent.payment_hash,
      projectId: world.projectId,
    })
    delete world.lnurl.answers.verify
    world.clock.advance(2_000)
    const later = await world.intentRow(intent.intent_id)
    assert.equal((await authorized(world.service.poll(later))).verified_by, 'provider')
  })
})

test('a receipt says what was authorized, and anybody can verify it', async (t) => {
  const world = await aGate(t)
  const intent = await world.quoted()
  const row = await pay(world, intent)
  const [key] = world.service.jwks.keys
  assert.ok(key)
  const { payload, protectedHeader } = await jwtVerify(row.receipt, await importJWK(key), {
    issuer: URL_OF_GATE,
    audience: world.projectId,
    typ: 'gate-receipt+jwt',
    algorithms: ['EdDSA'],
    currentDate: new Date(world.clock.now()),
  })
  const issuedAt = Math.floor(row.authorized_at / 1000)
  assert.deepEqual(protectedHeader, { alg: 'EdDSA', kid: key.kid, typ: 'gate-receipt+jwt' })
  assert.deepEqual(payload, {
    iss: URL_OF_GATE,
    aud: world.projectId,
    jti: row.receipt_id,
    iat: issuedAt,
    exp: issuedAt + 300,
    intent: intent.intent_id,
    route: 'render',
    htm: 'POST',
    htp: '/render/cat?size=2',
    req: intent.request_digest,
    sat: 50,
    ph: intent.payment_hash,
    net: 'regtest',
    by: 'preimage',
  })
})

/** A store that does what it is told and dies before it can say so. */
function losing(db: Db): Db {
  return {
    ...db,
    async write(unit) {
      await db.write(unit)
      throw new StoreError('connection lost')
    },
  }
}
