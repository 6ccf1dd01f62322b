import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { pino } from 'pino'
import { createExchangeRate } from '../../src/service/exchange-rate.ts'
import { worth } from '../../src/web/lib/format.ts'
import type { After } from '../support/folder.ts'
import { startServer, testClock } from '../support/server.ts'
import { serve } from '../support/serving.ts'
import { until } from '../support/until.ts'

const MINUTE = 60_000
const SILENT = pino({ level: 'silent' })

/** A source whose next answer the test chooses. */
async function aSource(t: After) {
  const next = { status: 200, body: '{"time":1764324000,"USD":97000,"EUR":84321.5}' }
  const url = await serve(t, (_request, response) => {
    response.writeHead(next.status, { location: '/elsewhere' }).end(next.body)
  })
  return { url, next }
}

suite('the price of a bitcoin', () => {
  test('each page has it while it is less than an hour old', async (t) => {
    const source = await aSource(t)
    const server = await startServer(t, { MAYFLY_RATE_SOURCE: `${source.url}#EUR` })
    const shown = async (): Promise<string | undefined> => {
      const page = await fetch(`${server.url}/buy`)
      return /data-rate="([^"]*)"/.exec(await page.text())?.[1]
    }
    await until('the rate', async () => (await shown()) === 'EUR 84321.5')
    source.next.body = '{"EUR":90000}'
    server.clock.advance(10 * MINUTE)
    await until('the next rate', async () => (await shown()) === 'EUR 90000')
    source.next.status = 500
    server.clock.advance(61 * MINUTE)
    assert.equal(await shown(), '')
  })

  test('it stays as it was when the source gives none, and the log says why', async (t) => {
    const source = await aSource(t)
    const logged: string[] = []
    const log = pino({ base: null }, { write: (line) => logged.push(JSON.parse(line).reason) })
    const rate = createExchangeRate(
      { url: source.url, currency: 'EUR' },
      { clock: testClock(), log, stopping: new AbortController().signal },
    )
    assert.equal(rate.current(), null)
    await rate.look()
    const wrong: [status: number, body: string, reason: RegExp][] = [
      [200, '{"EUR":"84000"}', /no number EUR/],
      [200, '{"EUR":0}', /no number EUR/],
      [200, '{"EUR":1e999}', /no number EUR/],
      [200, 'null', /no number EUR/],
      [200, '<html>', /JSON/],
      [200, ' '.repeat(65_537), /too large/],
      [302, '', /unexpected redirect/],
      [500, '{"EUR":1}', /status 500/],
    ]
    for (const [status, body, reason] of wrong) {
      Object.assign(source.next, { status, body })
      await rate.look()
      assert.match(String(logged.at(-1)), reason)
      assert.equal(rate.current(), 'EUR 84321.5', body.slice(0, 20))
    }
    assert.equal(logged.length, wrong.length)
  })

  test('it is known for an hour from when it was asked for, to the millisecond', async (t) => {
    let now = 0
    const clock = { now: () => 0, monotonic: () => now }
    const url = await serve(t, (_request, response) => {
      now = MINUTE
      response.end('{"EUR":84321.5}')
    })
    const rate = createExchangeRate(
      { url, currency: 'EUR' },
      { clock, log: SILENT, stopping: new AbortController().signal },
    )
    await rate.look()
    now = 60 * MINUTE
    assert.equal(rate.current(), 'EUR 84321.5')
    now++
    assert.equal(rate.current(), null)
  })

  test('a stop ends the question for it, and the log says nothing of that', async (t) => {
    let asked = 0
    const url = await serve(t, () => void asked++)
    // Its own time never ends it here.
    t.mock.method(AbortSignal, 'timeout', () => new AbortController().signal)
    const stop = new AbortController()
    const logged: string[] = []
    const rate = createExchangeRate(
      { url, currency: 'EUR' },
      {
        clock: testClock(),
        log: pino({}, { write: (line) => logged.push(line) }),
        stopping: stop.signal,
      },
    )
    let hasEnded = false
    void rate.look().then(() => {
      hasEnded = true
    })
    await until('the question', () => asked === 1)
    stop.abort()
    await until('the end of the question', () => hasEnded)
    assert.deepEqual([rate.current(), logged], [null, []])
  })

  test('a page says about what a price is, to the smallest coin', () => {
    assert.equal(worth(400, 'EUR 84321.5'), 'about €0.34')
    assert.equal(worth(5_000_000, 'USD 97000'), 'about $4,850.00')
    assert.equal(worth(400, 'JPY 15000000'), 'about ¥60')
    assert.equal(worth(1, 'EUR 84321.5'), 'less than €0.01')
    assert.equal(worth(400, ''), '')
  })
})
