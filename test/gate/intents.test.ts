import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { deleteRoute } from '../../src/gate/store.ts'
import { Problem } from '../../src/http/errors.ts'
import { base62 } from '../../src/lib/base62.ts'
import { createSecrets, keyedHash } from '../../src/secrets/secrets.ts'
import { aGate, aRequest, pay, QUOTE_SECONDS, SECRET } from '../support/gate.ts'
import { unit } from '../support/unit.ts'
import { copiesOf } from './rows.ts'

const MINUTE = 60_000

describe('an intent', () => {
  test('an intent is one for 20 requests on two servers at once, and so is its invoice', async (t) => {
    const world = await aGate(t)
    const other = await world.another()
    const project = await world.project()
    const key = randomUUID()
    const opened = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        (i % 2 === 0 ? world.service : other).open(project, key, aRequest()),
      ),
    )
    assert.equal(new Set(opened.map(({ intent }) => intent.bolt11)).size, 1)
  })

  test('an intent is found again after the secret was changed, and after its route is gone', async (t) => {
    const world = await aGate(t)
    const first = await world.quoted({ key: 'a-key-of-one' })
    await world.db.write(unit(deleteRoute(world.projectId, 'render')))
    const rotated = await world.another({ secrets: ['22'.repeat(32), SECRET] })
    const again = await rotated.open(await world.project(), 'a-key-of-one', aRequest())
    assert.deepEqual(again, { intent: first, isPayable: true })
    assert.equal(await rotated.foreign(), 0)
    const stranger = await world.another({ secrets: ['22'.repeat(32)] })
    assert.equal(await stranger.foreign(), 1)
  })

  test('an intent of the same key in another project is another one', async (t) => {
    const world = await aGate(t)
    const other = await world.projects.add({
      address: world.lnurl.address,
      routes: [{ routeId: 'render', method: 'POST', pattern: '/render/*', priceSats: 60 }],
      credits: 1,
    })
    const mine = await world.quoted({ key: 'a-key-of-one' })
    const theirs = await world.quoted({ key: 'a-key-of-one', project: other.projectId })
    assert.deepEqual([mine.amount_sats, theirs.amount_sats], [50, 60])
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
    test(`an intent is not found by its key with another ${part}`, async (t) => {
      const world = await aGate(t)
      await world.quoted({ key: 'a-key-of-one' })
      assert.deepEqual(await world.open({ key: 'a-key-of-one', ...changes }), {
        kind: 'idempotency key reused with a different request',
      })
    })
  }

  test('an intent can be paid until the quote expires, to the millisecond, and stays the same after that', async (t) => {
    const world = await aGate(t)
    const ask = { key: 'a-key-of-one' }
    const first = await world.open(ask)
    assert.ok(first.kind === 'quote')
    const { intent } = first
    assert.equal(first.isPayable, true)
    for (const [at, isPayable] of [
      [intent.quote_expires_at - 1, true],
      [intent.quote_expires_at, false],
    ] as const) {
      world.clock.now = () => at
      assert.deepEqual(await world.open(ask), { kind: 'quote', intent, isPayable })
    }
  })

  test('an intent has a quote of so many seconds, but never beyond its invoice, and is honoured for ten minutes more', async (t) => {
    const world = await aGate(t)
    const second = Math.ceil(world.clock.now() / 1000) * 1000
    world.clock.now = () => second + 999
    const long = await world.quoted()
    assert.equal(long.quote_expires_at, second + QUOTE_SECONDS * 1000)
    assert.equal(long.honoured_until, second + 3_600_000 + 10 * MINUTE)
    world.wallet.changes = { expirySeconds: 600 }
    const short = await world.quoted()
    assert.equal(short.quote_expires_at, second + 600_000)
    assert.equal(short.honoured_until, second + 600_000 + 10 * MINUTE)
  })

  test('an intent has an id that its key and its project decide, so that a newer version finds it again', async (t) => {
    const world = await aGate(t)
    const secrets = createSecrets([new Uint8Array(Buffer.from(SECRET, 'hex'))])
    const [secret] = secrets.keys('gate intent')
    const hash = keyedHash(secret, world.projectId, 'a-key-of-one')
    const { intent_id } = await world.quoted({ key: 'a-key-of-one' })
    assert.equal(intent_id, `gate_intent_${base62(hash.subarray(0, 16))}`)
  })

  test('an intent keeps its price when the route gets another one', async (t) => {
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
  test('a project without credits gets no intent, and no invoice is asked for', async (t) => {
    const world = await aGate(t, { credits: 0 })
    assert.deepEqual(await world.open(), { kind: 'no credits' })
    assert.equal(world.lnurl.requests.length, 0)
    await world.projects.grant(world.projectId, 1)
    assert.equal((await world.open()).kind, 'quote')
  })

  test('credits go below zero for those who have paid, and then no more is offered', async (t) => {
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

  test('credits cannot be overdrawn by more than the open intents of a project', async (t) => {
    const world = await aGate(t, { credits: 1 })
    const intent = await world.quoted()
    await world.db.write(unit(copiesOf(intent.intent_id, 9999)))
    const project = await world.project()
    await assert.rejects(world.service.open(project, randomUUID(), aRequest()), (refused) => {
      assert.ok(refused instanceof Problem)
      assert.equal(refused.phrase, 'rate limited')
      return Number(refused.headers['retry-after']) === 60
    })
    // One that is settled, or over, makes room for another.
    await pay(world, intent)
    await world.projects.grant(world.projectId, 1)
    assert.equal((await world.open()).kind, 'quote')
    world.clock.advance(24 * 60 * MINUTE)
    assert.equal((await world.open()).kind, 'quote')
  })
})
