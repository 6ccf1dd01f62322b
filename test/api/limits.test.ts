import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import type { CatchCapability, PaymentQuote } from '../../src/client/index.ts'
import { newId, tokenOf } from '../../src/lib/ids.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { query } from '../support/store.ts'
import { until } from '../support/until.ts'

const LIMITED = { status: 429, text: '{"error":"rate limited"}' }

suite('with its default', () => {
  test('the catalogue takes 120 requests of a client, and no more', async (t) => {
    const server = await startServer(t, { MAYFLY_RATE_LIMITS: 'on' })
    await tripsAt(120, { name: 'catalog', window: 60 }, () => ask(server, '/api/catalog'))
  })

  test('an owner makes 120 requests of all kinds', async (t) => {
    const server = await startServer(t, { MAYFLY_RATE_LIMITS: 'on' })
    const inbox = await anInbox(server)
    const paths = ['', '/events', '/events?q=x', `/events/${randomUUID()}`, '/stream']
    let asked = 0
    await tripsAt(120, { name: 'owner', window: 60 }, () => {
      const path = `/api/catch/${inbox.publicId}${paths[asked++ % paths.length]}`
      return ask(server, path, { authorization: `Bearer ${inbox.ownerToken}` })
    })
  })

  for (const [planId, burst] of [
    ['spark', 50],
    ['standard', 100],
    ['long', 250],
  ] as const) {
    test(`an inbox of ${planId} takes ${burst} requests within 5 seconds`, async (t) => {
      const server = await startServer(t, { MAYFLY_RATE_LIMITS: 'on' })
      const inbox = await anInbox(server, planId)
      const send = (): Promise<Answer> => ask(server, `/c/${inbox.publicId}/x`)
      // So many flushes of a busy disk may take longer than the window, which is the library's own.
      t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: Date.now() })
      await tripsAt(burst, { name: `ingest.${planId}`, window: 5 }, send)
      const { acceptedRequestCount } = await server.mayfly.catch(inbox).status()
      assert.equal(acceptedRequestCount, burst, 'what was refused is not stored')
    })
  }

  test('an order is polled 30 times within 15 seconds', async (t) => {
    const server = await startServer(t, { MAYFLY_RATE_LIMITS: 'on' })
    const { orderId } = await quoteOf(server)
    await tripsAt(30, { name: 'poll', window: 15 }, () => ask(server, `/api/payments/${orderId}`))
  })

  test('20 tokens that open nothing are let through', async (t) => {
    const server = await startServer(t, { MAYFLY_RATE_LIMITS: 'on' })
    const inbox = await anInbox(server)
    const tokens = [
      tokenOf('catch_owner', randomBytes(32)),
      inbox.ingestToken,
      `${inbox.ownerToken.slice(0, -1)}x`,
      'x',
    ]
    let asked = 0
    await tripsAt(20, { name: 'badBearer', window: 60 }, () =>
      ask(server, `/api/catch/${inbox.publicId}`, {
        authorization: `Bearer ${tokens[asked++ % tokens.length]}`,
      }),
    )
  })

  test('a network opens 10 orders a minute, where a file says so on the simulator', async (t) => {
    const server = await limited(t, { quote: { perMinute: 10, burst: 10 } })
    await tripsAt(10, { name: 'quote', window: 60 }, () => buy(server, randomUUID()))
  })

  test('a network has 20 unpaid orders, where a file says so on the simulator', async (t) => {
    const server = await limited(t, { openOrders: 20 })
    for (let i = 0; i < 20; i++) assert.equal((await buy(server, randomUUID())).status, 402)
    const refused = await buy(server, randomUUID())
    assert.deepEqual(short(refused), LIMITED)
    // The oldest of them ends with its quote.
    const seconds = Number(refused.headers.get('retry-after'))
    assert.ok(Number.isInteger(seconds) && seconds > 890 && seconds <= 900, String(seconds))
  })

  test('a network that opens 50 orders at once has 20, and 20 more when those are over', async (t) => {
    const server = await limited(t, { openOrders: 20 })
    const statuses = async () => {
      const answers = await Promise.all(Array.from({ length: 50 }, () => buy(server, randomUUID())))
      return answers.map(({ status }) => status).sort()
    }
    const most = [...Array(20).fill(402), ...Array(30).fill(429)]
    assert.deepEqual(await statuses(), most)
    server.clock.advance(900_000)
    assert.deepEqual(await statuses(), most)
  })

  test('the simulator opens as many orders as anybody likes', async (t) => {
    for (const rates of ['on', await ratesFile(t, {})]) {
      const server = await startServer(t, { MAYFLY_RATE_LIMITS: rates })
      for (let i = 0; i < 40; i++) assert.equal((await buy(server, randomUUID())).status, 402)
    }
  })

  test('a client buys 10 inboxes in a row and uses them', async (t) => {
    const server = await limited(t, { quote: { perMinute: 10, burst: 10 }, openOrders: 20 })
    for (let i = 0; i < 10; i++) {
      const inbox = await anInbox(server)
      assert.equal((await ask(server, `/c/${inbox.publicId}`)).status, 204)
      assert.equal((await server.mayfly.catch(inbox).page()).events.length, 1)
    }
  })
})

test('switched off, nothing is limited, and no answer speaks of a limit', async (t) => {
  const server = await startServer(t, { MAYFLY_RATE_LIMITS: 'off' })
  for (let i = 0; i < 200; i++) {
    const answer = await ask(server, '/api/catalog')
    assert.equal(answer.status, 200)
    assert.deepEqual(limitHeaders(answer), { policy: null, left: null, retryAfter: null })
  }
})

test('every limit lets through again when its window is over', async (t) => {
  // Two a second each.
  const rate = { perMinute: 120, burst: 2 }
  const server = await limited(t, {
    catalog: rate,
    owner: rate,
    poll: rate,
    quote: rate,
    badBearer: rate,
    'ingest.standard': rate,
  })
  const order = await quoteOf(server)
  const inbox = await anInbox(server, 'standard')
  const mine = `/api/catch/${inbox.publicId}`
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  const requests: [name: string, send: () => Promise<Answer>][] = [
    ['catalog', () => ask(server, '/api/catalog')],
    ['owner', () => ask(server, mine, bearer(inbox.ownerToken))],
    ['poll', () => ask(server, `/api/payments/${order.orderId}`)],
    ['quote', () => buy(server, randomUUID())],
    ['badBearer', () => ask(server, mine, bearer('x'))],
    ['ingest.standard', () => ask(server, `/c/${inbox.publicId}`)],
  ]
  await Promise.all(
    requests.map(async ([name, send]) => {
      const refused = await until(`${name} to be empty`, async () => {
        const answer = await send()
        return answer.status === 429 && answer
      })
      assert.deepEqual(limitHeaders(refused), {
        policy: `"${name}";q=2;w=1`,
        left: `"${name}";r=0;t=1`,
        retryAfter: '1',
      })
      await until(`${name} to be full again`, async () => (await send()).status !== 429)
    }),
  )
})

suite('nobody pays for a neighbour:', () => {
  const once = { perMinute: 1, burst: 1 }

  test('an order is polled, repeated and paid while another is out of polls', async (t) => {
    const server = await limited(t, { poll: { perMinute: 1, burst: 3 } })
    const [mine, theirs] = [randomUUID(), randomUUID()]
    const [ours, other] = [await quoteOf(server, mine), await quoteOf(server, theirs)]
    for (let i = 0; i < 3; i++) await ask(server, `/api/payments/${other.orderId}`)
    assert.deepEqual(short(await ask(server, `/api/payments/${other.orderId}`)), LIMITED)
    assert.deepEqual(short(await buy(server, theirs)), LIMITED, 'a repeat is the order’s own too')

    assert.equal((await ask(server, `/api/payments/${ours.orderId}`)).status, 402)
    await server.pay(ours.bolt11)
    assert.equal((await buy(server, mine)).status, 200)
    assert.equal((await buy(server, mine)).status, 200)
  })

  test('a good token opens its inbox while its client has guessed too often', async (t) => {
    const server = await limited(t, { badBearer: once })
    const inbox = await anInbox(server)
    const path = `/api/catch/${inbox.publicId}`
    const bad = { authorization: 'Bearer x' }
    assert.equal((await ask(server, path, bad)).status, 401)
    assert.deepEqual(short(await ask(server, path, bad)), LIMITED)
    assert.deepEqual(short(await ask(server, `${path}/events`, bad)), LIMITED)
    for (let i = 0; i < 10; i++) {
      const good = { authorization: `Bearer ${inbox.ownerToken}` }
      assert.equal((await ask(server, path, good)).status, 200)
      assert.equal((await ask(server, `${path}/events`, good)).status, 200)
      // Into an inbox a bad token is no guess: it makes the event public.
      assert.equal((await ask(server, `/c/${inbox.publicId}`, bad)).status, 204)
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
      assert.equal((await ask(server, '/api/catalog', from(address))).status, 200)
      assert.equal((await ask(server, path, bad)).status, 401)
      assert.equal((await buy(server, randomUUID(), from(address))).status, 402)
      assert.deepEqual(short(await ask(server, '/api/catalog', from(address))), LIMITED)
      assert.deepEqual(short(await ask(server, path, bad)), LIMITED)
      assert.deepEqual(short(await buy(server, randomUUID(), from(address))), LIMITED)
    }
    // A client is one address, or one /64; orders are counted by /24 and /48.
    assert.equal((await ask(server, '/api/catalog', from('203.0.113.8'))).status, 200)
    assert.deepEqual(short(await ask(server, '/api/catalog', from('2001:db8::2'))), LIMITED)
    assert.equal((await ask(server, '/api/catalog', from('2001:db8:0:1::2'))).status, 200)
    assert.deepEqual(short(await buy(server, randomUUID(), from('203.0.113.8'))), LIMITED)
    assert.deepEqual(short(await buy(server, randomUUID(), from('2001:db8:0:1::2'))), LIMITED)
    assert.equal((await buy(server, randomUUID(), from('203.0.114.8'))).status, 402)
    assert.equal((await buy(server, randomUUID(), from('2001:db8:1::2'))).status, 402)
  })

  test('what a stranger polls or sends in vain counts for nobody', async (t) => {
    const server = await limited(t, { poll: once, 'ingest.spark': once, owner: once })
    const inbox = await anInbox(server, 'spark')
    const stranger = tokenOf('catch_owner', randomBytes(32))
    for (let i = 0; i < 5; i++) {
      await ask(server, `/api/catch/${inbox.publicId}`, { authorization: `Bearer ${stranger}` })
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
  assert.equal(limitHeaders(await buy(server, key)).policy, '"quote";q=1;w=60')
  for (let left = 2; left >= 0; left--) {
    const repeat = await buy(server, key)
    assert.equal(repeat.status, 402)
    assert.deepEqual(
      [limitHeaders(repeat).policy, limitHeaders(repeat).left?.split(';t')[0]],
      ['"poll";q=3;w=180', `"poll";r=${left}`],
    )
  }
  const [repeat, fresh] = [await buy(server, key), await buy(server, randomUUID())]
  assert.deepEqual([short(repeat), limitHeaders(repeat).policy], [LIMITED, '"poll";q=3;w=180'])
  assert.deepEqual([short(fresh), limitHeaders(fresh).policy], [LIMITED, '"quote";q=1;w=60'])
})

test('an order that there is none of takes up no bucket', async (t) => {
  const server = await limited(t, { poll: { perMinute: 1, burst: 1 } })
  const unknown = newId('order')
  for (let i = 0; i < 3; i++) {
    const answer = await ask(server, `/api/payments/${unknown}`)
    assert.deepEqual(short(answer), { status: 404, text: '{"error":"order not found"}' })
    assert.deepEqual(limitHeaders(answer), { policy: null, left: null, retryAfter: null })
  }
  // A guess of the key of one that is there does count.
  const { orderId } = await quoteOf(server)
  const guess = { 'idempotency-key': randomUUID() }
  assert.equal((await ask(server, `/api/payments/${orderId}`, guess)).status, 404)
  assert.deepEqual(short(await ask(server, `/api/payments/${orderId}`, guess)), LIMITED)
})

suite('a 429 spends nothing:', () => {
  test('no order and no invoice are left of a purchase', async (t) => {
    for (const rates of [{ quote: { perMinute: 1, burst: 1 } }, { openOrders: 1 }]) {
      const server = await limited(t, rates)
      const first = await quoteOf(server)
      const key = randomUUID()
      for (let i = 0; i < 3; i++) assert.deepEqual(short(await buy(server, key)), LIMITED)
      assert.deepEqual(await query(server, 'select order_id from purchase_order'), [
        { order_id: first.orderId },
      ])
      assert.equal((await query(server, 'select payment_hash from simulator_invoice')).length, 1)
      if (!rates.openOrders) continue
      // Room again, and the key is as good as new.
      await server.pay(first.bolt11)
      await ask(server, `/api/payments/${first.orderId}`)
      assert.equal((await buy(server, key)).status, 402)
    }
  })

  test('a paid order is not delivered by a poll that is refused', async (t) => {
    const server = await limited(t, { poll: { perMinute: 60, burst: 1 } })
    const { orderId, bolt11 } = await quoteOf(server)
    const poll = (headers = {}): Promise<Answer> => ask(server, `/api/payments/${orderId}`, headers)
    await server.pay(bolt11)
    t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: Date.now() })
    assert.equal((await poll({ 'sec-purpose': 'prefetch' })).status, 402)
    assert.equal((await poll()).status, 429)
    t.mock.timers.tick(1_000)
    assert.equal((await poll()).status, 200)
  })

  test('an event is not stored, and a token not used', async (t) => {
    const server = await limited(t, { 'ingest.spark': { perMinute: 1, burst: 2 } })
    const key = randomUUID()
    const { orderId, bolt11 } = await quoteOf(server, key)
    await server.pay(bolt11)
    const bought = await buy(server, key)
    const { resource: inbox } = JSON.parse(bought.text) as { resource: CatchCapability }
    const authorized = { authorization: `Bearer ${inbox.ingestToken}` }
    for (let i = 0; i < 2; i++) await ask(server, `/c/${inbox.publicId}`)
    assert.deepEqual(short(await ask(server, `/c/${inbox.publicId}`, authorized)), LIMITED)
    assert.equal((await query(server, 'select sequence from catch_event')).length, 2)

    const again = await ask(server, `/api/payments/${orderId}`, { 'idempotency-key': key })
    assert.deepEqual([again.status, again.text], [200, bought.text], 'not sealed by the refusal')
    assert.equal((await server.mayfly.catch(inbox).status()).acceptedRequestCount, 2)
  })

  test('a body above the limit of the plan is refused for the rate first, and not read', async (t) => {
    const server = await limited(t, { 'ingest.spark': { perMinute: 1, burst: 1 } })
    const inbox = await anInbox(server, 'spark')
    await ask(server, `/c/${inbox.publicId}`)
    const body = 'x'.repeat(65_537)
    const answer = await fetch(`${server.url}/c/${inbox.publicId}`, { method: 'POST', body })
    assert.equal(answer.status, 429)
  })
})

test('only a token that is presented is a guess', async (t) => {
  const server = await limited(t, { badBearer: { perMinute: 1, burst: 2 } })
  const inbox = await anInbox(server)
  const paths = ['', '/events', '/stream', `/events/${randomUUID()}/body`].map(
    (path) => `/api/catch/${inbox.publicId}${path}`,
  )
  for (let round = 0; round < 3; round++) {
    for (const path of paths) {
      const answer = await ask(server, path)
      assert.equal(answer.status, 401)
      assert.equal(answer.headers.get('www-authenticate'), 'Bearer')
      assert.deepEqual(limitHeaders(answer), { policy: null, left: null, retryAfter: null })
    }
  }
  // Of any scheme, and also the one that is empty.
  for (const authorization of ['Basic eDp4', 'Bearer']) {
    assert.equal((await ask(server, paths[0] ?? '', { authorization })).status, 401)
  }
  for (const path of paths) {
    assert.deepEqual(short(await ask(server, path, { authorization: 'Bearer x' })), LIMITED)
    assert.equal((await ask(server, path)).status, 401, 'still no guess')
  }
})

test('a preflight is never limited, and takes nothing', async (t) => {
  const once = { perMinute: 1, burst: 1 }
  const server = await limited(t, {
    catalog: once,
    owner: once,
    poll: once,
    quote: once,
    badBearer: once,
    'ingest.spark': once,
  })
  const key = randomUUID()
  const { orderId } = await quoteOf(server, key)
  const inbox = { publicId: 'catch_0000000000000000000000' }
  const paths = [
    '/api/catalog',
    '/api/payments/catch',
    `/api/payments/${orderId}`,
    `/api/catch/${inbox.publicId}`,
    `/c/${inbox.publicId}`,
  ]
  const preflight = { origin: 'https://page.test', 'access-control-request-method': 'POST' }
  for (let round = 0; round < 5; round++) {
    for (const path of paths) {
      const answer = await ask(server, path, preflight, 'OPTIONS')
      assert.equal(answer.status, 204)
      assert.deepEqual(limitHeaders(answer), { policy: null, left: null, retryAfter: null })
    }
  }
  assert.equal((await ask(server, '/api/catalog')).status, 200)
  assert.deepEqual(short(await ask(server, '/api/catalog')), LIMITED)
  assert.equal((await ask(server, `/api/payments/${orderId}`)).status, 402)
  assert.equal((await ask(server, '/api/catalog', preflight, 'OPTIONS')).status, 204)
})

test('a page of any origin can read what the limits say', async (t) => {
  const server = await startServer(t, { MAYFLY_RATE_LIMITS: 'on' })
  const { headers } = await ask(server, '/api/catalog')
  const exposed = headers.get('access-control-expose-headers') ?? ''
  for (const name of ['Retry-After', 'RateLimit', 'RateLimit-Policy']) {
    assert.ok(exposed.split(', ').includes(name), name)
  }
})

suite('X-Forwarded-For', () => {
  const spoofed = (i: number) => ({
    'x-forwarded-for': `203.0.113.${i}`,
    forwarded: `for=203.0.113.${i}`,
    'x-real-ip': `203.0.113.${i}`,
  })

  for (const trusted of ['', '10.0.0.0/8']) {
    test(`changes nothing for a peer that is not trusted (${trusted || 'none is'})`, async (t) => {
      const server = await limited(
        t,
        { catalog: { perMinute: 1, burst: 3 }, quote: { perMinute: 1, burst: 3 } },
        { MAYFLY_TRUSTED_PROXIES: trusted },
      )
      for (let i = 0; i < 3; i++) {
        assert.equal((await ask(server, '/api/catalog', spoofed(i))).status, 200)
        assert.equal((await buy(server, randomUUID(), spoofed(i * 20))).status, 402)
      }
      assert.deepEqual(short(await ask(server, '/api/catalog', spoofed(4))), LIMITED)
      assert.deepEqual(short(await buy(server, randomUUID(), spoofed(80))), LIMITED)
    })
  }

  test('names the client where the peer is trusted, by the hop that the proxy wrote', async (t) => {
    const server = await limited(
      t,
      { catalog: { perMinute: 1, burst: 1 } },
      { MAYFLY_TRUSTED_PROXIES: '127.0.0.1' },
    )
    for (let i = 0; i < 5; i++) {
      assert.equal((await ask(server, '/api/catalog', spoofed(i))).status, 200)
      assert.deepEqual(short(await ask(server, '/api/catalog', spoofed(i))), LIMITED)
      // What its client put in front makes it no other client.
      const chained = { 'x-forwarded-for': `198.51.100.${i}, 203.0.113.${i}` }
      assert.deepEqual(short(await ask(server, '/api/catalog', chained)), LIMITED)
    }
  })
})

type Answer = { status: number; text: string; headers: Headers }

const short = ({ status, text }: Answer): { status: number; text: string } => ({ status, text })

function limitHeaders({
  headers,
}: Answer): Record<'policy' | 'left' | 'retryAfter', string | null> {
  return {
    policy: headers.get('ratelimit-policy'),
    left: headers.get('ratelimit'),
    retryAfter: headers.get('retry-after'),
  }
}

/** So many requests pass, each saying what is left, and the one after them is refused. */
async function tripsAt(
  count: number,
  { name, window }: { name: string; window: number },
  send: () => Promise<Answer>,
): Promise<void> {
  for (let left = count - 1; left >= 0; left--) {
    const answer = await send()
    assert.notEqual(answer.status, 429, `with ${left + 1} left`)
    const said = limitHeaders(answer)
    assert.equal(said.policy, `"${name}";q=${count};w=${window}`)
    assert.match(said.left ?? '', new RegExp(`^"${name}";r=${left};t=\\d+$`))
  }
  const refused = await send()
  assert.deepEqual(short(refused), LIMITED)
  const said = limitHeaders(refused)
  assert.equal(said.policy, `"${name}";q=${count};w=${window}`)
  assert.match(said.retryAfter ?? '', /^[1-9]\d*$/)
  assert.equal(said.left, `"${name}";r=0;t=${said.retryAfter}`)
  assert.ok(Number(said.retryAfter) <= window)
}

async function ask(
  { url }: TestServer,
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<Answer> {
  const answer = await fetch(url + path, { method, headers })
  if (answer.headers.get('content-type')?.startsWith('text/event-stream')) {
    await answer.body?.cancel()
    return { status: answer.status, text: '', headers: answer.headers }
  }
  return { status: answer.status, text: await answer.text(), headers: answer.headers }
}

async function buy(
  { url }: TestServer,
  key: string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const answer = await fetch(`${url}/api/payments/catch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key, ...headers },
    body: '{"planId":"spark"}',
  })
  return { status: answer.status, text: await answer.text(), headers: answer.headers }
}

async function quoteOf(server: TestServer, key: string = randomUUID()): Promise<PaymentQuote> {
  const { status, text } = await buy(server, key)
  assert.equal(status, 402)
  return JSON.parse(text) as PaymentQuote
}

/** Bought in two requests and no poll. */
async function anInbox(
  server: TestServer,
  planId: 'spark' | 'standard' | 'long' = 'spark',
): Promise<CatchCapability> {
  const purchase = {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID() },
    body: JSON.stringify({ planId }),
  }
  const quoted = await fetch(`${server.url}/api/payments/catch`, purchase)
  await server.pay(((await quoted.json()) as PaymentQuote).bolt11)
  const bought = await fetch(`${server.url}/api/payments/catch`, purchase)
  return ((await bought.json()) as { resource: CatchCapability }).resource
}

async function ratesFile(t: After, rates: object): Promise<string> {
  const file = join(await temporaryFolder(t), 'rates.json')
  await writeFile(file, JSON.stringify(rates))
  return file
}

async function limited(
  t: After,
  rates: object,
  environment: Record<string, string> = {},
): Promise<TestServer> {
  return startServer(t, { MAYFLY_RATE_LIMITS: await ratesFile(t, rates), ...environment })
}
