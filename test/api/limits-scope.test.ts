import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { newId, tokenOf } from '../../src/lib/ids.ts'
import { openOrder, purchase } from '../support/buying.ts'
import { anInbox } from '../support/catch.ts'
import { ask, LIMITED, limited, limitHeaders, short } from '../support/limits.ts'
import { aMonitor } from '../support/pulse.ts'
import { aWhisper } from '../support/whisper.ts'

suite('nobody pays for a neighbour', () => {
  const once = { perMinute: 1, burst: 1 }

  test('an order is polled, repeated and paid while another is out of polls', async (t) => {
    const server = await limited(t, { poll: { perMinute: 1, burst: 3 } })
    const [mine, theirs] = [randomUUID(), randomUUID()]
    const [ours, other] = [
      await openOrder(server, { key: mine }),
      await openOrder(server, { key: theirs }),
    ]
    for (let i = 0; i < 3; i++) await ask(server, `/api/payments/${other.orderId}`)
    assert.deepEqual(short(await ask(server, `/api/payments/${other.orderId}`)), LIMITED)
    assert.deepEqual(
      short(await purchase(server, { key: theirs })),
      LIMITED,
      'a repeat is the order’s own too',
    )

    assert.equal((await ask(server, `/api/payments/${ours.orderId}`)).status, 402)
    await server.pay(ours.bolt11)
    assert.equal((await purchase(server, { key: mine })).status, 200)
    assert.equal((await purchase(server, { key: mine })).status, 200)
  })

  test('a right token of any product opens while its client has guessed too often', async (t) => {
    const server = await limited(t, { badBearer: once })
    const [inbox, monitor] = [await anInbox(server), await aMonitor(server)]
    const whisper = await aWhisper(server)
    const opened: [method: string, path: string, token: string][] = [
      ['GET', `/api/catch/${inbox.publicId}`, inbox.ownerToken],
      ['GET', `/api/catch/${inbox.publicId}/events`, inbox.ownerToken],
      ['GET', `/api/pulse/${monitor.publicId}`, monitor.ownerToken],
      ['POST', `/p/${monitor.publicId}`, monitor.pingToken],
      ['GET', `/w/${whisper.publicId}`, whisper.readToken],
    ]
    const bad = { authorization: 'Bearer x' }
    const [[, path] = ['', '']] = opened
    assert.equal((await ask(server, path, { headers: bad })).status, 401)
    for (let i = 0; i < 3; i++) {
      for (const [method, path, token] of opened) {
        assert.deepEqual(short(await ask(server, path, { method, headers: bad })), LIMITED, path)
        const good = { authorization: `Bearer ${token}` }
        assert.ok((await ask(server, path, { method, headers: good })).status < 300, path)
      }
      // Into an inbox a bad token is no guess: it makes the event public.
      assert.equal((await ask(server, `/c/${inbox.publicId}`, { headers: bad })).status, 204)
      assert.equal((await ask(server, '/api/catalog')).status, 200)
    }
  })

  test('an owner reads one inbox while another is out of requests', async (t) => {
    const server = await limited(t, { owner: once, 'ingest.spark': once })
    const [one, two] = [await anInbox(server), await anInbox(server)]
    await server.mayfly.catch(one).status()
    await assert.rejects(server.mayfly.catch(one).status(), { status: 429 })
    assert.equal((await ask(server, `/c/${one.publicId}`)).status, 204)
    assert.deepEqual(short(await ask(server, `/c/${one.publicId}`)), LIMITED)
    assert.equal((await ask(server, `/c/${two.publicId}`)).status, 204)
    assert.equal((await server.mayfly.catch(two).status()).acceptedRequestCount, 1)
  })

  test('a client is served while another one, behind the same proxy, is not', async (t) => {
    const server = await limited(
      t,
      { catalog: once, badBearer: once, quote: once, openOrders: 1 },
      { MAYFLY_TRUSTED_PROXIES: '127.0.0.1' },
    )
    const from = (address: string) => ({ 'x-forwarded-for': address })
    const path = '/api/catch/catch_0000000000000000000000'
    for (const address of ['203.0.113.7', '198.51.100.7', '2001:db8::1', '2001:db9::1']) {
      const bad = { ...from(address), authorization: 'Bearer x' }
      assert.equal((await ask(server, '/api/catalog', { headers: from(address) })).status, 200)
      assert.equal((await ask(server, path, { headers: bad })).status, 401)
      assert.equal((await purchase(server, { headers: from(address) })).status, 402)
      assert.deepEqual(
        short(await ask(server, '/api/catalog', { headers: from(address) })),
        LIMITED,
      )
      assert.deepEqual(short(await ask(server, path, { headers: bad })), LIMITED)
      assert.deepEqual(short(await purchase(server, { headers: from(address) })), LIMITED)
    }
    // A client is one address, or one /64; orders are counted by /24 and /48.
    assert.equal((await ask(server, '/api/catalog', { headers: from('203.0.113.8') })).status, 200)
    assert.deepEqual(
      short(await ask(server, '/api/catalog', { headers: from('2001:db8::2') })),
      LIMITED,
    )
    assert.equal(
      (await ask(server, '/api/catalog', { headers: from('2001:db8:0:1::2') })).status,
      200,
    )
    assert.deepEqual(short(await purchase(server, { headers: from('203.0.113.8') })), LIMITED)
    assert.deepEqual(short(await purchase(server, { headers: from('2001:db8:0:1::2') })), LIMITED)
    assert.equal((await purchase(server, { headers: from('203.0.114.8') })).status, 402)
    assert.equal((await purchase(server, { headers: from('2001:db8:1::2') })).status, 402)
  })

  test('what a stranger polls or sends in vain counts for nobody', async (t) => {
    const server = await limited(t, { poll: once, 'ingest.spark': once, owner: once })
    const inbox = await anInbox(server, 'spark')
    const stranger = tokenOf('catch_owner', randomBytes(32))
    for (let i = 0; i < 5; i++) {
      await ask(server, `/api/catch/${inbox.publicId}`, {
        headers: { authorization: `Bearer ${stranger}` },
      })
    }
    assert.equal((await server.mayfly.catch(inbox).status()).status, 'active')
  })
})

test('repeats of a known key count for its order, and new orders for the network', async (t) => {
  const server = await limited(t, {
    quote: { perMinute: 1, burst: 1 },
    poll: { perMinute: 1, burst: 3 },
  })
  const key = randomUUID()
  assert.equal(limitHeaders(await purchase(server, { key })).policy, '"quote";q=1;w=60')
  for (let left = 2; left >= 0; left--) {
    const repeat = await purchase(server, { key })
    assert.equal(repeat.status, 402)
    assert.deepEqual(
      [limitHeaders(repeat).policy, limitHeaders(repeat).left?.split(';t')[0]],
      ['"poll";q=3;w=180', `"poll";r=${left}`],
    )
  }
  const [repeat, fresh] = [await purchase(server, { key }), await purchase(server)]
  assert.deepEqual([short(repeat), limitHeaders(repeat).policy], [LIMITED, '"poll";q=3;w=180'])
  assert.deepEqual([short(fresh), limitHeaders(fresh).policy], [LIMITED, '"quote";q=1;w=60'])
})

test('an order that does not exist takes up no bucket', async (t) => {
  const server = await limited(t, { poll: { perMinute: 1, burst: 1 } })
  const unknown = newId('order')
  for (let i = 0; i < 3; i++) {
    const answer = await ask(server, `/api/payments/${unknown}`)
    assert.deepEqual(short(answer), { status: 404, text: '{"error":"order not found"}' })
    assert.deepEqual(limitHeaders(answer), { policy: null, left: null, retryAfter: null })
  }
  // A guess of the key of one that is there does count.
  const { orderId } = await openOrder(server)
  const guess = { 'idempotency-key': randomUUID() }
  assert.equal((await ask(server, `/api/payments/${orderId}`, { headers: guess })).status, 404)
  assert.deepEqual(
    short(await ask(server, `/api/payments/${orderId}`, { headers: guess })),
    LIMITED,
  )
})

test('only a token that is presented counts as a guess', async (t) => {
  const server = await limited(t, { badBearer: { perMinute: 1, burst: 2 } })
  const inbox = await anInbox(server)
  const paths = ['', '/events', '/stream', `/events/${randomUUID()}/body`].map(
    (path) => `/api/catch/${inbox.publicId}${path}`,
  )
  for (let round = 0; round < 3; round++) {
    for (const path of paths) {
      const answer = await ask(server, path)
      assert.equal(answer.status, 401)
      assert.equal(answer.header('www-authenticate'), 'Bearer')
      assert.deepEqual(limitHeaders(answer), { policy: null, left: null, retryAfter: null })
    }
  }
  // Of any scheme, and also the one that is empty.
  for (const authorization of ['Basic eDp4', 'Bearer']) {
    assert.equal((await ask(server, paths[0] ?? '', { headers: { authorization } })).status, 401)
  }
  for (const path of paths) {
    assert.deepEqual(
      short(await ask(server, path, { headers: { authorization: 'Bearer x' } })),
      LIMITED,
    )
    assert.equal((await ask(server, path)).status, 401, 'still no guess')
  }
})
