import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { decodeProtectedHeader, importJWK, jwtVerify } from 'jose'
import { type Db, StoreError } from '../../src/db/db.ts'
import type { Proven } from '../../src/gate/service.ts'
import { deleteRoute, type IntentRow, type ReceiptRow } from '../../src/gate/store.ts'
import { aGate, aRequest, reasons, SECRET, URL_OF_GATE, type World } from '../support/gate.ts'

const MINUTE = 60_000

describe('an intent', () => {
  test('is the same one for the same key and request, with one invoice', async (t) => {
    const world = await aGate(t)
    const first = await world.quoted({ key: 'a-key-of-one' })
    assert.deepEqual(await world.quoted({ key: 'a-key-of-one' }), first)
    assert.equal(world.lnurl.requests.length, 1)
  })

  test('is one for 50 requests at once, and asks for one invoice', async (t) => {
    const world = await aGate(t)
    const all = await Promise.all(
      Array.from({ length: 50 }, () => world.quoted({ key: 'same-key' })),
    )
    assert.equal(new Set(all.map(({ bolt11 }) => bolt11)).size, 1)
    assert.equal(world.lnurl.requests.length, 1)
  })

  test('is one for requests on two servers at once, whichever had its invoice first', async (t) => {
    const world = await aGate(t)
    const other = await world.another()
    const project = await world.project()
    const key = randomUUID()
    const opened = await Promise.all(
      [world.service, other].map((service) => service.open(project, key, aRequest())),
    )
    const invoices = opened.map((each) => each.kind === 'quote' && each.intent.bolt11)
    assert.equal(new Set(invoices).size, 1)
    assert.ok(invoices[0])
  })

  test('is found again after the secret was changed, and after its route is gone', async (t) => {
    const world = await aGate(t)
    const first = await world.quoted({ key: 'a-key-of-one' })
    await world.db.write([deleteRoute(world.projectId, 'render')])
    const rotated = await world.another({ secrets: ['22'.repeat(32), SECRET] })
    const again = await rotated.open(await world.project(), 'a-key-of-one', aRequest())
    assert.deepEqual(again, { kind: 'quote', intent: first, isOnOffer: true })
    assert.equal(await rotated.foreign(), 0)
    const stranger = await world.another({ secrets: ['22'.repeat(32)] })
    assert.equal(await stranger.foreign(), 1)
  })

  test('of the same key in another project is another one', async (t) => {
    const world = await aGate(t)
    const other = await world.projects.add({
      address: world.lnurl.address,
      routes: [{ routeId: 'render', method: 'POST', pattern: '/render/*', priceSats: 50 }],
      credits: 1,
    })
    const mine = await world.quoted({ key: 'a-key-of-one' })
    const theirs = await world.quoted({ key: 'a-key-of-one', project: other.projectId })
    assert.notEqual(mine.intent_id, theirs.intent_id)
    assert.equal(await world.service.intent(other.projectId, mine.intent_id), null)
  })

  for (const [part, changes] of Object.entries({
    route: { routeId: 'ping' },
    method: { method: 'GET' },
    path: { path: '/render/dog?size=2' },
    query: { path: '/render/cat?size=3' },
    'query that is empty': { path: '/render/cat?' },
    body: { bodySha256: 'ab'.repeat(32) },
  })) {
    test(`is not found by its key with another ${part}`, async (t) => {
      const world = await aGate(t)
      await world.quoted({ key: 'a-key-of-one' })
      assert.deepEqual(await world.open({ key: 'a-key-of-one', ...changes }), {
        kind: 'idempotency key reused with a different request',
      })
    })
  }

  for (const [note, changes] of Object.entries({
    'a route that is not registered': { routeId: 'other' },
    'another method than its route': { method: 'GET' },
    'the method in lower case': { method: 'post' },
    'another path than its route': { path: '/other/cat' },
    'a path that goes up': { path: '/render/../render/cat' },
    'a path with an encoded slash': { path: '/render/cat%2f..' },
    'a path with an empty segment': { path: '/render//cat' },
    'no path': { path: '' },
  })) {
    test(`is not made for ${note}`, async (t) => {
      const world = await aGate(t)
      assert.deepEqual(await world.open(changes), { kind: 'invalid binding' })
      assert.equal(world.lnurl.requests.length, 0)
    })
  }

  test('is on offer until the quote expires, and stays the same after that', async (t) => {
    const world = await aGate(t)
    const ask = { key: 'a-key-of-one' }
    const intent = await world.quoted(ask)
    world.clock.advance(intent.quote_expires_at - world.clock.now() - 1_000)
    assert.deepEqual(await world.open(ask), { kind: 'quote', intent, isOnOffer: true })
    world.clock.advance(2_000)
    assert.deepEqual(await world.open(ask), { kind: 'quote', intent, isOnOffer: false })
  })

  test('keeps its price when the route gets another one', async (t) => {
    const world = await aGate(t)
    const before = await world.quoted({ key: 'a-key-of-one' })
    await world.projects.removeRoute(world.projectId, 'render')
    await world.projects.addRoute(world.projectId, {
      routeId: 'render',
      method: 'POST',
      pattern: '/render/*',
      priceSats: 70,
    })
    assert.equal((await world.quoted({ key: 'a-key-of-one' })).amount_sats, before.amount_sats)
    assert.equal((await world.quoted()).amount_sats, 70)
  })
})

describe('credits', () => {
  test('none: no intent, and no invoice is asked for', async (t) => {
    const world = await aGate(t, { credits: 0 })
    assert.deepEqual(await world.open(), { kind: 'no credits' })
    assert.equal(world.lnurl.requests.length, 0)
    await world.projects.grant(world.projectId, 1)
    assert.equal((await world.open()).kind, 'quote')
  })

  test('are not held by visits that are never paid', async (t) => {
    const world = await aGate(t, { credits: 1 })
    for (let i = 0; i < 20; i++) await world.quoted()
    assert.equal((await world.project()).credits, 1)
  })

  test('go below zero for those who have paid, and then no more is offered', async (t) => {
    const world = await aGate(t, { credits: 1 })
    const intents = [await world.quoted(), await world.quoted(), await world.quoted()]
    const remaining = []
    for (const intent of intents) remaining.push((await pay(world, intent)).credits_remaining)
    assert.deepEqual(remaining, [0, -1, -2])
    assert.deepEqual(await world.open(), { kind: 'no credits' })
    await world.projects.grant(world.projectId, 3)
    assert.equal((await world.project()).credits, 1)
    assert.equal((await world.open()).kind, 'quote')
  })

  test('that ran out while the invoice was made offer nothing', async (t) => {
    const world = await aGate(t, { credits: 1 })
    const paid = await world.quoted()
    world.lnurl.answers.invoice = async (_url, _response, usual) => {
      await pay(world, paid)
      return usual()
    }
    assert.deepEqual(await world.open(), { kind: 'no credits' })
  })

  test('cannot be overdrawn by more than the open intents of a project', async (t) => {
    const world = await aGate(t, { credits: 1 })
    const intent = await world.quoted()
    await world.db.write([
      {
        text: `with recursive n(i) as (select 1 union all select i + 1 from n where i < 9999)
          insert into gate_intent select 'copy-' || i, secret_id, project_id, route_id, method, path,
            body_sha256, request_digest, amount_sats, recipient, network, bolt11, 'copy-' || i,
            description_hash, verify_url, state, created_at, quote_expires_at, honoured_until,
            verify_count, next_verify_at from gate_intent, n where intent_id = $1`,
        values: [intent.intent_id],
      },
    ])
    const refused = await world.open()
    assert.equal(refused.kind, 'too many open')
    // One that is settled, or over, makes room for another.
    await pay(world, intent)
    await world.projects.grant(world.projectId, 1)
    assert.equal((await world.open()).kind, 'quote')
    world.clock.advance(24 * 60 * MINUTE)
    assert.equal((await world.open()).kind, 'quote')
  })
})

describe('a proof', () => {
  test('by preimage authorizes once and takes one credit', async (t) => {
    const world = await aGate(t)
    const intent = await world.quoted()
    const receipt = await pay(world, intent)
    assert.equal(receipt.verified_by, 'preimage')
    assert.equal(receipt.credits_remaining, 9)
    assert.equal((await world.project()).credits, 9)
    const again = await world.open({ key: randomUUID() })
    assert.equal(again.kind, 'quote')
  })

  test('comes back with the same receipt however often it is repeated', async (t) => {
    const world = await aGate(t)
    const intent = await world.quoted()
    const receipt = await pay(world, intent)
    world.clock.advance(90 * MINUTE)
    assert.deepEqual(await pay(world, intent), receipt)
    assert.deepEqual(await authorized(world.service.poll(intent)), receipt)
    assert.deepEqual(
      await authorized(world.service.poll(await world.intentRow(intent.intent_id))),
      receipt,
    )
    assert.equal((await world.project()).credits, 9)
  })

  test('50 at once get 50 equal receipts for one credit', async (t) => {
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

  test('of another intent authorizes nothing', async (t) => {
    const world = await aGate(t)
    const [mine, other] = [await world.quoted(), await world.quoted()]
    const preimage = world.wallet.pay(other.bolt11)
    for (const wrong of [preimage, '00'.repeat(32), '', 'zz'.repeat(32), preimage.slice(2)]) {
      assert.equal((await world.service.prove(mine, wrong)).kind, 'pending')
    }
    assert.equal((await world.project()).credits, 10)
  })

  test('is honoured after the quote, until ten minutes past the invoice', async (t) => {
    const world = await aGate(t)
    const [early, late] = [await world.quoted(), await world.quoted()]
    const [first, second] = [early, late].map(({ bolt11 }) => world.wallet.pay(bolt11))
    world.clock.advance(early.honoured_until - world.clock.now() - 1_000)
    assert.equal((await world.service.prove(early, first ?? '')).kind, 'authorized')
    world.clock.advance(2_000)
    assert.equal((await world.service.prove(late, second ?? '')).kind, 'pending')
    assert.equal((await world.service.poll(late)).kind, 'pending')
    assert.equal((await world.project()).credits, 9)
  })

  test('is honoured for a project that was suspended meanwhile, and nothing new is offered', async (t) => {
    const world = await aGate(t)
    const intent = await world.quoted()
    await world.projects.suspend(world.projectId)
    assert.deepEqual(await world.open(), { kind: 'invalid project capability' })
    assert.equal((await pay(world, intent)).credits_remaining, 9)
  })

  test('after which the answer was lost gets the receipt that was written', async (t) => {
    const world = await aGate(t)
    const intent = await world.quoted()
    const preimage = world.wallet.pay(intent.bolt11)
    const dying = await world.another({ db: losing(world.db) })
    await assert.rejects(dying.prove(intent, preimage), StoreError)
    const receipt = await authorized(world.service.prove(intent, preimage))
    assert.deepEqual(await authorized((await world.another()).poll(intent)), receipt)
    assert.equal((await world.project()).credits, 9)
  })

  test('writes nothing where the store fails, and can be repeated', async (t) => {
    const world = await aGate(t)
    const intent = await world.quoted()
    const preimage = world.wallet.pay(intent.bolt11)
    const failing: Db = {
      ...world.db,
      write: async () => {
        throw new StoreError('the disk is full')
      },
    }
    const service = await world.another({ db: failing })
    await assert.rejects(service.prove(intent, preimage), StoreError)
    assert.equal((await world.intentRow(intent.intent_id)).state, 'open')
    assert.equal((await pay(world, intent)).credits_remaining, 9)
  })
})

describe('a poll', () => {
  test('learns from the provider, without the preimage', async (t) => {
    const world = await aGate(t)
    world.lnurl.answers.verify = async (_url, _response, usual) => ({
      ...(await usual()),
      preimage: null,
    })
    const intent = await world.quoted()
    assert.deepEqual(await world.service.poll(intent), {
      kind: 'pending',
      intent,
      retryAfterSeconds: 2,
    })
    world.wallet.pay(intent.bolt11)
    world.clock.advance(2_000)
    const receipt = await authorized(world.service.poll(await world.intentRow(intent.intent_id)))
    assert.equal(receipt.verified_by, 'provider')
  })

  test('asks the provider less and less often', async (t) => {
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

  test('asks the provider although a clock that was ahead did, and was put right', async (t) => {
    const world = await aGate(t)
    const { intent_id: intentId } = await world.quoted()
    const row = () => world.intentRow(intentId)
    world.clock.advance(2 * MINUTE)
    await world.service.poll(await row())
    world.clock.advance(-2 * MINUTE)
    world.wallet.pay((await row()).bolt11)
    assert.equal((await world.service.poll(await row())).kind, 'authorized')
  })

  test('of 50 at once asks the provider once', async (t) => {
    const world = await aGate(t)
    const intent = await world.quoted()
    await Promise.all(Array.from({ length: 50 }, () => world.service.poll(intent)))
    assert.equal(world.lnurl.requests.filter(({ step }) => step === 'verify').length, 1)
  })

  test('asks nobody where the provider cannot tell', async (t) => {
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

  const preimage = '00'.repeat(32)
  for (const [note, answer] of Object.entries({
    'says settled with a preimage of something else': { status: 'OK', settled: true, preimage },
    'says settled of another invoice': { status: 'OK', settled: true, pr: 'lnbcrt1other' },
    'says "true" in letters': { status: 'OK', settled: 'true' },
    'says settled and ERROR': { status: 'ERROR', settled: true },
    'says nothing of use': [],
    'does not know the invoice': { status: 'ERROR', reason: 'Not found' },
  })) {
    test(`authorizes nothing where the provider ${note}`, async (t) => {
      const world = await aGate(t)
      const intent = await world.quoted()
      world.wallet.pay(intent.bolt11)
      world.lnurl.answers.verify = () => answer
      assert.equal((await world.service.poll(intent)).kind, 'pending')
      assert.equal((await world.project()).credits, 10)
      // A contradiction is not the end: the preimage is still a proof.
      assert.equal((await pay(world, intent)).verified_by, 'preimage')
    })
  }

  test('stays pending while the provider is down, and says so in the log', async (t) => {
    const world = await aGate(t)
    const intent = await world.quoted()
    world.wallet.pay(intent.bolt11)
    world.lnurl.answers.verify = (_url, response) => void response.writeHead(502).end('<html>')
    assert.equal((await world.service.poll(intent)).kind, 'pending')
    assert.match(String(reasons(world.logged).at(-1)), /not a JSON object/)
    delete world.lnurl.answers.verify
    world.clock.advance(2_000)
    const later = await world.intentRow(intent.intent_id)
    assert.equal((await authorized(world.service.poll(later))).verified_by, 'provider')
  })
})

describe('a receipt', () => {
  test('says what was authorized, and anybody can verify it', async (t) => {
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

  test('is verified by the previous key through a rotation, and new ones by the new key', async (t) => {
    const world = await aGate(t)
    const before = await pay(world, await world.quoted())
    const rotated = await world.another({ secrets: ['22'.repeat(32), SECRET] })
    const [current, previous] = rotated.jwks.keys
    assert.deepEqual(previous, world.service.jwks.keys[0])
    assert.equal(decodeProtectedHeader(before.receipt).kid, previous?.kid)
    const intent = await world.quoted()
    const after = await authorized(rotated.prove(intent, world.wallet.pay(intent.bolt11)))
    assert.equal(decodeProtectedHeader(after.receipt).kid, current?.kid)
  })

  test('needs no secret of the key set: it holds public keys alone', async (t) => {
    const world = await aGate(t)
    for (const key of world.service.jwks.keys) {
      assert.deepEqual(Object.keys(key).sort(), ['alg', 'crv', 'kid', 'kty', 'use', 'x'])
    }
  })
})

test('no capability, preimage or receipt reaches the log', async (t) => {
  const world = await aGate(t)
  const intent = await world.quoted({ key: 'a-key-of-one' })
  const preimage = world.wallet.pay(intent.bolt11)
  const { receipt } = await authorized(world.service.prove(intent, preimage))
  const text = JSON.stringify(world.logged)
  for (const secret of [world.capability, preimage, receipt, 'a-key-of-one', intent.path]) {
    assert.equal(text.includes(secret), false)
  }
})

/** The receipt of an intent that is paid and proven by its preimage. */
async function pay(world: World, intent: IntentRow): Promise<ReceiptRow> {
  return authorized(world.service.prove(intent, world.wallet.pay(intent.bolt11)))
}

async function authorized(proving: Promise<Proven>): Promise<ReceiptRow> {
  const proven = await proving
  if (proven.kind !== 'authorized') throw new Error('not authorized')
  return proven.receipt
}

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
