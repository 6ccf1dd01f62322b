import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, test } from 'node:test'
import { OutboundError } from '../../src/alerts/outbound-rules.ts'
import { createLnurlClient } from '../../src/gate/lnurl-client.ts'
import { createLnurlProvider } from '../../src/gate/provider.ts'
import { bytesToWords, decodeBech32, encodeBech32 } from '../../src/protocol/bech32.ts'
import { LnurlError } from '../../src/protocol/lnurl.ts'
import { aGate, type World } from '../support/gate.ts'
import type { Answer } from '../support/lnurl-server.ts'
import { testClock } from '../support/server.ts'
import { until } from '../support/until.ts'

test('a quote asks the address what may be paid, then asks for the invoice, and shows that', async (t) => {
  const world = await aGate(t)
  const intent = await world.quoted()
  assert.deepEqual(
    world.lnurl.requests.map(({ step, url }) => [step, url]),
    [['invoice', `http://${world.lnurl.host}/cb?user=alice&amount=50000`]],
  )
  assert.equal(intent.amount_sats, 50)
  assert.equal(intent.recipient, world.lnurl.address)
  assert.equal(intent.verify_url, `http://${world.lnurl.host}/verify/${intent.payment_hash}`)
})

test('a quote asks anew what may be paid after a minute, to the millisecond, and not before', async (t) => {
  const world = await aGate(t)
  let passedMs = Math.ceil(world.clock.monotonic()) + 61_000
  world.clock.monotonic = () => passedMs
  await world.quoted()
  passedMs += 59_999
  await world.quoted()
  assert.deepEqual(steps(world), ['pay', 'invoice', 'invoice'])
  passedMs += 1
  await world.quoted()
  assert.deepEqual(steps(world).slice(3), ['pay', 'invoice'])
})

test('a provider that is closed is asked nothing more', async (t) => {
  const { lnurl, clock } = await aGate(t)
  const client = createLnurlClient({ clock, allowed: new Set([lnurl.host]) })
  const provider = createLnurlProvider({ client, network: 'regtest', clock })
  await provider.close()
  await assert.rejects(
    provider.invoice(lnurl.address, 1000),
    (error) => error instanceof LnurlError && error.cause instanceof OutboundError,
  )
  assert.deepEqual(lnurl.requests, [])
})

test('a quote sends the provider nothing but what the request needs', async (t) => {
  const world = await aGate(t)
  await world.quoted()
  const [request] = world.lnurl.requests
  assert.deepEqual(request?.headers, {
    host: world.lnurl.host,
    connection: 'keep-alive',
    accept: 'application/json',
    'accept-encoding': 'identity',
    'user-agent': 'lnurl-pay',
  })
})

/** What is no valid offer, by the step in which it comes, and the reason that the log has for it. */
const NO_OFFERS: Record<string, [step: 'pay' | 'invoice', answer: Answer, reason: RegExp]> = {
  'an error with a status of its own': [
    'pay',
    (_url, to) => void to.writeHead(404).end('{"status":"ERROR","reason":"no such user"}'),
    /the provider refused: no such user/,
  ],
  'HTML with status 200': [
    'pay',
    (_url, to) => void to.end('<!doctype html><p>Hello</p>'),
    /^the answer of the provider is not JSON$/,
  ],
  'a failing server': [
    'invoice',
    (_url, to) => void to.writeHead(500).end('{"status":"OK"}'),
    /^the provider answers with HTTP 500$/,
  ],
  'more than 256 KiB, a piece at a time': [
    'invoice',
    (_url, to) => {
      to.on('error', () => {})
      for (let i = 0; i < 300; i++) to.write(' '.repeat(1024))
      to.end('{}')
    },
    /too large/,
  ],
  'a broken connection': [
    'pay',
    (_url, to) => void to.destroy(),
    /^the provider cannot be reached \([A-Z_]+\)$/,
  ],
  'a least amount above the price': [
    'pay',
    changed({ minSendable: 50_001 }),
    /takes 51 to 1000000 sat/,
  ],
  'a callback to a private address': [
    'pay',
    changed({ callback: 'https://10.0.0.1/cb' }),
    /not a public name/,
  ],
  'an invoice that reads well and that no key has signed': [
    'invoice',
    async (_url, _to, usual) => unsigned(await usual()),
    /signature is wrong/,
  ],
}
for (const [note, [step, answer, reason]] of Object.entries(NO_OFFERS)) {
  test(`no invoice is shown for a provider's answer that is ${note}`, async (t) => {
    const world = await aGate(t)
    world.lnurl.answers[step] = answer
    // What was believed a moment ago is asked anew.
    world.clock.advance(60_001)
    assert.deepEqual(await world.open(), { kind: 'checkout unavailable' })
    const { reason: why, ...told }: Record<string, unknown> = world.logged.at(-1) ?? {}
    assert.match(String(why), reason)
    assert.deepEqual(told, { event: 'gate.provider_failed', projectId: world.projectId })
    assert.equal((await world.project()).credits, 10)
  })
}

test('an invoice that the same provider gave before is refused, for ever and for all', async (t) => {
  const world = await aGate(t)
  const first = await world.quoted()
  const other = await world.projects.add({
    address: world.lnurl.address,
    routes: [{ routeId: 'render', method: 'POST', pattern: '/render/*', priceSats: 50 }],
    credits: 1,
  })
  world.lnurl.answers.invoice = () => ({ pr: first.bolt11 })
  assert.deepEqual(await world.open(), { kind: 'checkout unavailable' })
  assert.deepEqual(await world.open({ project: other.projectId }), { kind: 'checkout unavailable' })
  assert.deepEqual(world.logged.filter(({ event }) => event === 'gate.invoice_reused').length, 2)
})

test('a payment hash stays used after its unpaid intent was purged', async (t) => {
  const world = await aGate(t)
  const { payment_hash: paymentHash, intent_id: intentId } = await world.quoted()
  world.clock.advance(40 * 24 * 3600 * 1000)
  assert.equal(await world.service.purge(world.clock.now()), 1)
  assert.equal(await world.service.intent(world.projectId, intentId), null)
  world.wallet.changes = { paymentHash }
  assert.deepEqual(await world.open(), { kind: 'checkout unavailable' })
})

test('an invoice is taken whether or not it has the hash of the metadata', async (t) => {
  const world = await aGate(t)
  world.wallet.changes = { descriptionHash: 'ab'.repeat(32) }
  assert.ok((await world.quoted()).bolt11)
})

test('at most four calls to one provider run at once, and the others wait their turn', async (t) => {
  const world = await aGate(t)
  const held: ServerResponse[] = []
  let most = 0
  let running = 0
  world.lnurl.answers.invoice = async (_url, response, usual) => {
    running++
    most = Math.max(most, running)
    held.push(response)
    // Lets go when as many as may run are there, or when the rest is.
    await new Promise((resolve) => setImmediate(resolve))
    running--
    return usual()
  }
  const opened = await Promise.all(Array.from({ length: 20 }, () => world.open()))
  assert.ok(opened.every(({ kind }) => kind === 'quote'))
  assert.ok(most <= 4, String(most))
  assert.equal(held.length, 20)
})

describe('the way to a provider', () => {
  const NAME = 'alice@pay.example.com'

  test('the way to a provider does not lead to a private address because a list has another server of that machine', async (t) => {
    const client = createLnurlClient({
      clock: testClock(),
      allowed: new Set(['127.0.0.1:9999']),
      resolve: async () => [{ address: '127.0.0.1', family: 4 }],
    })
    t.after(() => client.close())
    await assert.rejects(client.payParams(NAME), refusedAs(/not public/))
  })

  test('the way to a provider that keeps all waiting is given up first by who has no turn yet', async (t) => {
    const { lnurl, clock } = await aGate(t)
    lnurl.answers.pay = () => undefined
    const client = createLnurlClient({ clock, allowed: new Set([lnurl.host]) })
    t.after(() => client.close())
    const ended: number[] = []
    const asked = Array.from({ length: 5 }, (_, i) =>
      client.payParams(lnurl.address).finally(() => ended.push(i)),
    )
    await assert.rejects(Promise.race(asked), refusedAs(/takes too long/))
    assert.deepEqual(ended, [4])
    await Promise.allSettled(asked)
  })

  test('the way to a provider that many payers of one address wait for has a turn for another address', async (t) => {
    const { lnurl, clock } = await aGate(t)
    const held: ServerResponse[] = []
    lnurl.answers.pay = (_url, response) => void held.push(response)
    const client = createLnurlClient({ clock, allowed: new Set([lnurl.host]) })
    const ask = (user: string) => client.payParams(`${user}@${lnurl.host}`)
    const all = Promise.allSettled([...Array(8).fill('alice'), 'bob'].map(ask))
    await until('the calls at once', () => held.length === 4)
    for (const response of held) response.end('{}')
    await until('the next four', () => lnurl.requests.length >= 8)
    assert.ok(lnurl.requests.slice(0, 8).some(({ url }) => url.endsWith('bob')))
    await client.close()
    await all
  })

  test('the way to a provider does not lead to a verify URL that was not checked', async (t) => {
    const client = createLnurlClient({ clock: testClock(), allowed: new Set() })
    t.after(() => client.close())
    const invoice = { address: NAME, bolt11: 'lnbc1', paymentHash: '00'.repeat(32) }
    await assert.rejects(client.verify('http://127.0.0.1:9/v', invoice), refusedAs(/not https/))
  })
})

function changed(changes: Record<string, unknown>): Answer {
  return async (_url, _to, usual) => ({ ...(await usual()), ...changes })
}

/** The answer whose invoice has zeros for a signature, of which no key is to be had. */
function unsigned(answer: Record<string, unknown>): Record<string, unknown> {
  const { prefix = '', words = new Uint8Array() } = decodeBech32(String(answer.pr)) ?? {}
  const signature = bytesToWords(new Uint8Array(65))
  const signed = Uint8Array.of(...words.slice(0, -signature.length), ...signature)
  return { ...answer, pr: encodeBech32(prefix, signed) }
}

const steps = ({ lnurl }: World): string[] => lnurl.requests.map(({ step }) => step)

const refusedAs = (message: RegExp) => (error: unknown) =>
  error instanceof LnurlError && message.test(error.message)
