import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import type { FastifyReply } from 'fastify'
import {
  createLimits,
  createWindows,
  LIMITS,
  OPEN_ORDERS,
  type Rate,
} from '../../src/http/limits.ts'
import { ConfigError, readConfig } from '../../src/service/config.ts'
import { ALL_LIMITS } from '../../src/service/products.ts'
import { readRates } from '../../src/service/rates.ts'
import { temporaryFolder } from '../support/folder.ts'
import { startServer } from '../support/server.ts'
import { messageOf } from './refusals.ts'

const RATES = Object.fromEntries(
  ALL_LIMITS.map(({ name, perMinute, burst }) => [name, { perMinute, burst }]),
)
const DEFAULT_RATES: Record<string, Rate | number> = { ...RATES, openOrders: OPEN_ORDERS }

const noMember = (name: string) =>
  new RegExp(`^MAYFLY_RATE_LIMITS: the file has no member ${name}\\.$`)
const noRate = (name: string) =>
  new RegExp(
    `^MAYFLY_RATE_LIMITS: ${name} must be {"perMinute": a number above 0, "burst": an integer from 1}, each at most 1000000000, or null\\.$`,
  )
const noCount =
  /^MAYFLY_RATE_LIMITS: openOrders must be an integer from 1 to 1000000000, or null\.$/

suite('the rate limits', () => {
  const { quote: _, quoteEgress: __, openOrders: ___, ...onSimulator } = DEFAULT_RATES

  test('the rate limits have defaults, and on the simulator none for what costs nothing there', () => {
    assert.deepEqual(ratesIn('on', false), DEFAULT_RATES)
    assert.deepEqual(ratesIn('on', true), onSimulator)
    assert.deepEqual(ratesIn('off', false), {})
  })

  test('the rate limits are changed by the file where it names them, and switched off by null', async (t) => {
    const file = join(await temporaryFolder(t), 'rates.json')
    const changes = { quote: { perMinute: 7.5 }, poll: { perMinute: 9, burst: 2 }, catalog: null }
    await writeFile(file, JSON.stringify(changes))
    const { catalog: _catalog, ...rest } = DEFAULT_RATES
    assert.deepEqual(ratesIn(readConfig({ MAYFLY_RATE_LIMITS: file }).rateLimits, false), {
      ...rest,
      quote: { perMinute: 7.5, burst: 8 },
      poll: { perMinute: 9, burst: 2 },
    })
  })

  test('a file of rate limits that is malformed stops the start', () => {
    for (const file of ['/nowhere/rates.json', 'maybe', '']) {
      assert.match(
        messageOf({ MAYFLY_RATE_LIMITS: file }),
        /^MAYFLY_RATE_LIMITS must be `on`, `off` or a readable JSON file \(ENOENT: .+\)\.$/,
      )
    }
  })
})

suite('a file of limits', () => {
  const refused: [what: string, content: string, message: RegExp][] = [
    [
      'no JSON',
      '{"quote":',
      /^MAYFLY_RATE_LIMITS must be `on`, `off` or a readable JSON file \(.+\)\.$/,
    ],
    ['nothing', '', /^MAYFLY_RATE_LIMITS must be `on`, `off` or a readable JSON file \(.+\)\.$/],
    ['a list', '[]', /^MAYFLY_RATE_LIMITS: the file must be an object\.$/],
    ['a word', '"maybe"', /^MAYFLY_RATE_LIMITS: the file must be an object\.$/],
    ['nothing but null', 'null', /^MAYFLY_RATE_LIMITS: the file must be an object\.$/],
    ['a name that is unknown', '{"quotes": {"perMinute": 1}}', noMember('quotes')],
    ['a name that all objects have', '{"constructor": {"perMinute": 1}}', noMember('constructor')],
    ['a plan that is unknown', '{"ingest.gold": {"perMinute": 1}}', noMember('ingest.gold')],
    ['a rate that is a number', '{"quote": 10}', noRate('quote')],
    ['a rate without its speed', '{"quote": {"burst": 10}}', noRate('quote')],
    ['a speed of nothing', '{"poll": {"perMinute": 0}}', noRate('poll')],
    ['a speed below nothing', '{"poll": {"perMinute": -1}}', noRate('poll')],
    ['a speed in words', '{"catalog": {"perMinute": "120"}}', noRate('catalog')],
    ['a burst of nothing', '{"owner": {"perMinute": 1, "burst": 0}}', noRate('owner')],
    ['half a burst', '{"ingest.long": {"perMinute": 1, "burst": 1.5}}', noRate('ingest.long')],
    ['a member that is unknown', '{"read": {"perMinute": 1, "per": 2}}', noRate('read')],
    ['a speed beyond counting', '{"poll": {"perMinute": 1000000001}}', noRate('poll')],
    ['a burst beyond counting', '{"read": {"perMinute": 1, "burst": 1e19}}', noRate('read')],
    ['more open orders than can be', '{"openOrders": 1e19}', noCount],
    ['no open orders at all', '{"openOrders": 0}', noCount],
    ['half an open order', '{"openOrders": 1.5}', noCount],
    ['open orders as a rate', '{"openOrders": {"perMinute": 1}}', noCount],
  ]
  for (const [what, content, message] of refused) {
    test(`a file of limits with ${what} stops the start, and says where`, async (t) => {
      const file = join(await temporaryFolder(t), 'rates.json')
      await writeFile(file, content)
      await assert.rejects(startServer(t, { MAYFLY_RATE_LIMITS: file }), (error) => {
        assert.ok(error instanceof ConfigError)
        assert.match(error.message, message)
        return true
      })
    })
  }

  test('a file of limits may name every limit, and may name no limit', () => {
    assert.deepEqual(ratesIn({}, false), DEFAULT_RATES)
    const once = { perMinute: 1, burst: 1 }
    const all = Object.fromEntries(Object.keys(RATES).map((name) => [name, once]))
    assert.deepEqual(ratesIn({ ...all, openOrders: 3 }, false), { ...all, openOrders: 3 })
    const none = Object.fromEntries(Object.keys(RATES).map((name) => [name, null]))
    assert.deepEqual(ratesIn({ ...none, openOrders: null }, false), {})
  })

  test('a file of limits switches on what the simulator leaves off, and only what it names', () => {
    const { quote: _, quoteEgress: __, openOrders: ___, ...rest } = DEFAULT_RATES
    assert.deepEqual(ratesIn({}, true), rest)
    assert.deepEqual(ratesIn({ openOrders: 5 }, true), { ...rest, openOrders: 5 })
    assert.deepEqual(ratesIn({ quote: { perMinute: 3 } }, true), {
      ...rest,
      quote: { perMinute: 3, burst: 3 },
    })
  })

  test('a file of limits changes the defaults of nobody else', () => {
    ratesIn({ catalog: null, quote: { perMinute: 1 } }, false)
    assert.deepEqual(ratesIn('on', false), DEFAULT_RATES)
  })
})

suite('a limit', () => {
  const cases: [note: string, rate: { perMinute: number; burst: number }, policy: string][] = [
    ['by the minute', { perMinute: 10, burst: 10 }, '"catalog";q=10;w=60'],
    ['in a window below a second', { perMinute: 600, burst: 1 }, '"catalog";q=1;w=1'],
    ['in a window that is no whole second', { perMinute: 7, burst: 10 }, '"catalog";q=10;w=86'],
    ['at less than one a minute', { perMinute: 0.5, burst: 1 }, '"catalog";q=1;w=120'],
    ['in a window of years', { perMinute: 0.001, burst: 100 }, '"catalog";q=100;w=6000000'],
  ]
  for (const [note, rate, policy] of cases) {
    test(`a limit holds ${note}`, async (t) => {
      const clock = aClock(t)
      const take = taking({ catalog: rate })
      const windowMs = (rate.burst / rate.perMinute) * 60_000
      for (let round = 0; round < 2; round++) {
        for (let i = 0; i < rate.burst; i++) assert.equal((await take()).policy, policy)
        clock.advance(Math.ceil(windowMs) - 1)
        await assert.rejects(take(), { phrase: 'rate limited', headers: { 'retry-after': '1' } })
        clock.advance(1)
      }
    })
  }

  test('a limit says the whole seconds to wait, never 0', async (t) => {
    const clock = aClock(t)
    const take = taking({ catalog: { perMinute: 1, burst: 1 } })
    await take()
    for (const [after, seconds] of [
      [0, '60'],
      [1, '60'],
      [999, '59'],
      [58_999, '1'],
    ] as const) {
      clock.advance(after)
      await assert.rejects(take(), { headers: { 'retry-after': seconds } })
    }
  })
})

test('a window that another instance began ends at its own time, whatever was begun before it', (t) => {
  const clock = aClock(t)
  const windows = createWindows({ perMinute: 60, burst: 2 })
  windows.take('begun before')
  windows.learn('somebody', 2, 500)
  assert.equal(windows.take('somebody').isRefused, true)
  clock.advance(500)
  assert.deepEqual(windows.take('somebody'), { remaining: 1, msLeft: 2000, isRefused: false })
})

test('taking a limit that nobody configured fails, rather than limit nothing', async () => {
  const limits = createLimits({ limits: [], openOrders: null }, () => '203.0.113.7')
  await assert.rejects(limits.take(LIMITS.catalog, 'somebody', {} as FastifyReply), {
    message: 'no product brings a limit named catalog',
  })
})

/** The time that the limits go by. */
function aClock(t: TestContext): { advance(ms: number): void } {
  let now = 0
  t.mock.method(performance, 'now', () => now)
  return {
    advance(ms) {
      now += ms
    },
  }
}

/** What is in force by name, without what is switched off. */
function ratesIn(setting: unknown, isSimulator: boolean): Record<string, Rate | number> {
  const { limits, openOrders } = readRates(setting, ALL_LIMITS, { isSimulator })
  const inForce = limits.flatMap(({ limit, rate }): [string, Rate][] => {
    return rate ? [[limit.name, { perMinute: rate.perMinute, burst: rate.burst }]] : []
  })
  return { ...Object.fromEntries(inForce), ...(openOrders === null ? {} : { openOrders }) }
}

/** Takes from the bucket of the catalogue. */
function taking({ catalog }: { catalog: Rate }): () => Promise<{ policy: string | undefined }> {
  const rates = { limits: [{ limit: LIMITS.catalog, rate: catalog }], openOrders: null }
  const limits = createLimits(rates, (_request: IncomingMessage) => '203.0.113.7')
  return async () => {
    const headers = new Map<string, string>()
    const reply = { header: (name: string, value: string) => headers.set(name, value) }
    await limits.take(LIMITS.catalog, 'somebody', reply as unknown as FastifyReply)
    return { policy: headers.get('ratelimit-policy') }
  }
}
