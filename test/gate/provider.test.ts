import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, test } from 'node:test'
import { OutboundError } from '../../src/alerts/outbound-rules.ts'
import { createLnurlClient } from '../../src/gate/lnurl-client.ts'
import { createLnurlProvider } from '../../src/gate/provider.ts'
import { bytesToWords, decodeBech32, encodeBech32 } from '../../src/protocol/bech32.ts'
import { LnurlError } from '../../src/protocol/lnurl.ts'
import { aGate, PAYEE, reasons, type World } from '../support/gate.ts'
import { testClock } from '../support/server.ts'

/** For a provider that keeps silent; long enough for one that does not. */
const IMPATIENT = { lookupMs: 1_000, connectMs: 1_000, silenceMs: 1_000, overallMs: 1_000 }

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

test('a quote asks anew what may be paid after a minute, also where the clock was set back meanwhile', async (t) => {
  const world = await aGate(t)
  world.clock.advance(61_000)
  await world.quoted()
  world.clock.jump(-600_000)
  world.clock.advance(60_000)
  world.lnurl.requests.length = 0
  await world.quoted()
  assert.deepEqual(steps(world), ['pay', 'invoice'])
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

describe("a provider's answer that is not a valid offer", () => {
  const rows: { note: string; reason: RegExp; spoil: (world: World) => void; isSilent?: true }[] = [
    {
      note: 'an error in its own words',
      reason: /the provider refused: no such user/,
      spoil: ({ lnurl }) => {
        lnurl.answers.pay = () => ({ status: 'ERROR', reason: 'no such user' })
      },
    },
    {
      note: 'an error with a status of its own',
      reason: /the provider refused: no such user/,
      spoil: ({ lnurl }) => {
        lnurl.answers.pay = (_url, response) => {
          response.writeHead(404).end('{"status":"ERROR","reason":"no such user"}')
        }
      },
    },
    {
      note: 'HTML with status 200',
      reason: /^the answer of the provider is not JSON$/,
      spoil: ({ lnurl }) => {
        lnurl.answers.pay = (_url, response) => void response.end('<!doctype html><p>Hello</p>')
      },
    },
    {
      note: 'a failing server',
      reason: /^the provider answers with HTTP 500$/,
      spoil: ({ lnurl }) => {
        lnurl.answers.invoice = (_url, response) =>
          void response.writeHead(500).end('{"status":"OK"}')
      },
    },
    {
      note: 'a redirect, even to the right place',
      reason: /HTTP 302/,
      spoil: ({ lnurl }) => {
        lnurl.answers.pay = (_url, response) => {
          response.writeHead(302, { location: `http://${lnurl.host}/cb` }).end()
        }
      },
    },
    {
      note: 'more than 256 KiB, said in advance',
      reason: /too large/,
      spoil: ({ lnurl }) => {
        lnurl.answers.pay = (_url, response) => void response.end('x'.repeat(256 * 1024 + 1))
      },
    },
    {
      note: 'more than 256 KiB, a piece at a time',
      reason: /too large/,
      spoil: ({ lnurl }) => {
        lnurl.answers.invoice = (_url, response) => {
          response.on('error', () => {})
          for (let i = 0; i < 300; i++) response.write(' '.repeat(1024))
          response.end('{}')
        }
      },
    },
    {
      note: 'nothing at all',
      reason: /takes too long/,
      isSilent: true,
      spoil: ({ lnurl }) => {
        lnurl.answers.pay = () => undefined
      },
    },
    {
      note: 'headers and then nothing',
      reason: /takes too long/,
      isSilent: true,
      spoil: ({ lnurl }) => {
        lnurl.answers.invoice = (_url, response) => {
          response.writeHead(200)
          response.write('{')
        }
      },
    },
    {
      note: 'a broken connection',
      reason: /^the provider cannot be reached \([A-Z_]+\)$/,
      spoil: ({ lnurl }) => {
        lnurl.answers.pay = (_url, response) => void response.destroy()
      },
    },
    {
      note: 'another tag',
      reason: /no pay request/,
      spoil: changing('pay', { tag: 'withdrawRequest' }),
    },
    {
      note: 'a demand for the name of the payer',
      reason: /data about the payer/,
      spoil: changing('pay', { payerData: { name: { mandatory: true } } }),
    },
    {
      note: 'a least amount above the price',
      reason: /takes 51 to 1000000 sat/,
      spoil: changing('pay', { minSendable: 50_001 }),
    },
    {
      note: 'a greatest amount below the price',
      reason: /takes 1 to 49 sat/,
      spoil: changing('pay', { maxSendable: 49_999 }),
    },
    {
      note: 'a callback to a private address',
      reason: /not a public name/,
      spoil: changing('pay', { callback: 'https://10.0.0.1/cb' }),
    },
    {
      note: 'a callback without TLS',
      reason: /not https/,
      spoil: changing('pay', { callback: 'http://example.com/cb' }),
    },
    { note: 'no invoice', reason: /no invoice/, spoil: changing('invoice', { pr: '' }) },
    {
      note: 'an invoice that is none',
      reason: /cannot be used/,
      spoil: changing('invoice', { pr: 'lnbcrt1xyz' }),
    },
    {
      note: 'an invoice over another sum',
      reason: /another sum/,
      spoil: ({ wallet }) => {
        wallet.changes = { amountMsat: 50_001 }
      },
    },
    {
      note: 'an invoice that reads well and that no key has signed',
      reason: /signature is wrong/,
      spoil: ({ lnurl }) => {
        lnurl.answers.invoice = async (_url, _response, usual) => {
          const body = await usual()
          return { ...body, pr: signedWith(0, String(body.pr)) }
        }
      },
    },
    {
      note: 'an invoice that another key has signed than the one that it names',
      reason: /signature is wrong/,
      spoil: ({ lnurl, wallet }) => {
        wallet.changes = { payee: PAYEE }
        lnurl.answers.invoice = async (_url, _response, usual) => {
          const body = await usual()
          return { ...body, pr: signedWith(1, String(body.pr)) }
        }
      },
    },
  ]
  for (const { note, reason, spoil, isSilent } of rows) {
    test(`no invoice is shown for a provider's answer that is ${note}`, async (t) => {
      const world = await aGate(t, isSilent ? { timeouts: IMPATIENT } : {})
      // What was believed a moment ago is asked anew.
      world.clock.advance(60_001)
      spoil(world)
      assert.deepEqual(await world.open(), { kind: 'checkout unavailable' })
      assert.match(String(reasons(world.logged).at(-1)), reason)
      assert.equal((await world.project()).credits, 10)
    })
  }
})

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
  world.wallet.description = { descriptionHash: 'ab'.repeat(32) }
  assert.ok((await world.quoted()).bolt11)
})

test("the quote ends with the invoice, where that is before the quote's own end", async (t) => {
  const world = await aGate(t)
  world.wallet.changes = { expirySeconds: 120 }
  const intent = await world.quoted()
  assert.equal(intent.quote_expires_at, intent.honoured_until - 10 * 60 * 1000)
  assert.ok(intent.quote_expires_at <= world.clock.now() + 120_000)
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

  test('the way to a provider does not lead to a private address behind a public name', async (t) => {
    for (const address of ['127.0.0.1', '10.0.0.1', '169.254.169.254', '::1', 'fd00::1']) {
      const client = createLnurlClient({
        clock: testClock(),
        allowed: new Set(),
        resolve: async () => [{ address, family: address.includes(':') ? 6 : 4 }],
      })
      t.after(() => client.close())
      await assert.rejects(client.payParams(NAME), refusedAs(/not public/))
    }
  })

  test('the way to a provider does not lead to a private address because a list has another server of that machine', async (t) => {
    const client = createLnurlClient({
      clock: testClock(),
      allowed: new Set(['127.0.0.1:9999']),
      resolve: async () => [{ address: '127.0.0.1', family: 4 }],
    })
    t.after(() => client.close())
    await assert.rejects(client.payParams(NAME), refusedAs(/not public/))
  })

  test('the way to a provider ends at a name that does not resolve, however long that takes', async (t) => {
    const never = new Promise<never>(() => {})
    const client = createLnurlClient({
      clock: testClock(),
      allowed: new Set(),
      resolve: () => never,
      timeouts: IMPATIENT,
    })
    t.after(() => client.close())
    await assert.rejects(client.payParams(NAME), refusedAs(/takes too long/))
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

  test('the way to a provider does not lead to a verify URL that was not checked', async (t) => {
    const client = createLnurlClient({ clock: testClock(), allowed: new Set() })
    t.after(() => client.close())
    const invoice = { bolt11: 'lnbc1', paymentHash: '00'.repeat(32) }
    await assert.rejects(client.verify('http://127.0.0.1:9/v', invoice), refusedAs(/not https/))
  })
})

function changing(step: 'pay' | 'invoice', changes: Record<string, unknown>) {
  return ({ lnurl }: World): void => {
    lnurl.answers[step] = async (_url, _response, usual) => ({ ...(await usual()), ...changes })
  }
}

/** The invoice with 64 bytes of this value for a signature; of zeros, no key is to be had. */
function signedWith(byte: number, bolt11: string): string {
  const { prefix = '', words = new Uint8Array() } = decodeBech32(bolt11) ?? {}
  const signature = bytesToWords(Uint8Array.of(...new Uint8Array(64).fill(byte), 0))
  return encodeBech32(prefix, Uint8Array.of(...words.slice(0, -signature.length), ...signature))
}

const steps = ({ lnurl }: World): string[] => lnurl.requests.map(({ step }) => step)

const refusedAs = (message: RegExp) => (error: unknown) =>
  error instanceof LnurlError && message.test(error.message)
