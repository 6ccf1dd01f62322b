import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { suite, test } from 'node:test'
import type { Db } from '../../src/db/db.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createMetrics } from '../../src/metrics/metrics.ts'
import { put } from '../support/alerts.ts'
import { l402Credential, poll, purchase, quoteOf } from '../support/buying.ts'
import { freePort } from '../support/ports.ts'
import { aMonitor, live, ping } from '../support/pulse.ts'
import { aReceiver } from '../support/receiver.ts'
import { listener, scrape } from '../support/scrape.ts'
import { startServer } from '../support/server.ts'
import { query } from '../support/store.ts'
import { until } from '../support/until.ts'
import { purchaseWhisper } from '../support/whisper.ts'

const ON = { MAYFLY_METRICS_PORT: '0' }
/** What asks for metrics, or names them. */
const FILES = [
  'deploy/alerts.yml',
  'deploy/alerts.test.yml',
  'deploy/grafana.json',
  'docs/reference/log-metrics.md',
]

test('metrics appear after a sale, and alerts, dashboard and documents ask for no other', async (t) => {
  const server = await startServer(t, { ...ON, MAYFLY_GATE: 'on', MAYFLY_RATE_LIMITS: 'on' })
  const quote = quoteOf(await purchase(server, {}))
  await server.pay(quote.bolt11)
  const delivered = await until('the delivery', async () => {
    const answer = await poll(server, quote.orderId)
    return answer.status === 200 && answer
  })
  const { resource } = JSON.parse(delivered.text)
  const secret = `${resource.publicId}?token=${resource.ingestToken}`
  const askedAt = performance.now()
  assert.equal((await fetch(`${server.url}/c/${secret}`, { method: 'POST' })).status, 204)
  await fetch(`${server.url}/nothing/${secret}`)
  const tookSeconds = (performance.now() - askedAt) / 1000

  const challenged = await purchase(server, { protocol: 'l402', key: 'a key of eight' })
  const preimage = await server.pay(quoteOf(challenged).bolt11)
  const authorization = l402Credential(challenged, preimage)
  const paid = await purchase(server, { protocol: 'l402', key: 'a key of eight', authorization })
  assert.equal(paid.status, 200)

  const unpaid = await purchaseWhisper(server, { body: Buffer.alloc(100) })
  assert.equal(unpaid.status, 402)

  const stream = await fetch(`${server.url}/api/catch/${resource.publicId}/stream`, {
    headers: { authorization: `Bearer ${resource.ownerToken}` },
  })
  assert.equal(stream.status, 200)

  const { text, series } = await scrape(server)
  const exposed = new Set([...text.matchAll(/^# TYPE (mayfly_\w+)/gm)].map(([, name]) => name))
  for (const file of FILES) {
    const asked =
      (await readFile(new URL(`../../${file}`, import.meta.url), 'utf8')).match(
        /\bmayfly_[a-z_]+[a-z]/g,
      ) ?? []
    assert.ok(asked.length > 5, file)
    for (const name of asked) {
      assert.ok(exposed.has(name.replace(/_(?:bucket|sum|count)$/, '')), `${file}: ${name}`)
    }
  }
  for (const process of ['process_resident_memory_bytes', 'nodejs_eventloop_lag_seconds']) {
    assert.ok(series.has(process), process)
  }

  const of = (name: string): number => series.get(name) ?? Number.NaN
  assert.equal(of('mayfly_orders{state="settled"}'), 2)
  for (const state of ['pending', 'dead', 'paid_unfulfilled', 'refunded']) {
    assert.equal(of(`mayfly_orders{state="${state}"}`), state === 'pending' ? 1 : 0, state)
  }
  assert.equal(of('mayfly_orders_quoted_total{product="catch"}'), 2)
  assert.equal(of('mayfly_orders_delivered_total{product="catch"}'), 2)
  assert.equal(of('mayfly_settled_sats_total{product="catch"}'), 200)
  assert.ok(!text.includes('mayfly_renewals_total{'), 'nothing was extended')
  const settledBy = ['stream', 'lookup', 'preimage'].map(
    (by) => series.get(`mayfly_orders_settled_total{product="catch",by="${by}"}`) ?? 0,
  )
  assert.equal(
    settledBy.reduce((sum, orders) => sum + orders),
    2,
  )
  const { storedBytes } = await server.mayfly.catch(resource).status()
  assert.equal(of('mayfly_ingest_kept_bytes_total'), storedBytes)
  assert.ok(storedBytes > 0)
  assert.equal(of('mayfly_open_streams{route="/api/catch/:publicId/stream"}'), 1)
  const ingest = '{method="POST",route="/c/:publicId",status="2xx"}'
  assert.equal(of(`mayfly_http_requests_total${ingest}`), 1)
  assert.equal(of(`mayfly_http_request_duration_seconds_count${ingest}`), 1)
  const seconds = of(`mayfly_http_request_duration_seconds_sum${ingest}`)
  assert.ok(seconds > 0 && seconds <= tookSeconds, `${seconds} of ${tookSeconds} seconds`)
  assert.equal(of('mayfly_http_requests_total{method="GET",route="none",status="4xx"}'), 1)
  assert.deepEqual([of('mayfly_node_up'), of('mayfly_node_synced')], [1, 1])
  assert.equal(of('mayfly_node_info{network="regtest"}'), 1)
  assert.equal(of('mayfly_checkout_open'), 1)
  assert.equal(of('mayfly_whisper_unpaid_bytes{part="common"}'), 100)
  assert.equal(of('mayfly_whisper_unpaid_bytes{part="small"}'), 0)
  assert.ok(of('mayfly_store_duration_seconds_count{operation="write"}') > 4)
  assert.equal(of('mayfly_store_queue_depth{operation="write"}'), 0)

  for (const secretText of [
    ...[resource.publicId, resource.ownerToken, resource.ingestToken, preimage],
    ...[quote.orderId, quote.paymentHash, quote.bolt11, 'token', 'nothing', '127.0.0.1'],
  ]) {
    assert.ok(!text.includes(secretText), `${secretText} is in the metrics`)
  }

  // The service ends it: of an answer that its reader breaks off, nothing is counted.
  await server.mayfly.catch(resource).destroy()
  await stream.text()
  const watched = '{method="GET",route="/api/catch/:publicId/stream",status="2xx"}'
  const after = await until('the stream is counted', async () => {
    const now = (await scrape(server)).series
    return now.get(`mayfly_http_requests_total${watched}`) === 1 && now
  })
  assert.equal(after.get('mayfly_open_streams{route="/api/catch/:publicId/stream"}'), 0)
  assert.equal(after.get(`mayfly_http_request_duration_seconds_count${watched}`), undefined)
})

test('a refusal is counted under the limit that refused', async (t) => {
  const rates = { MAYFLY_RATE_LIMITS: 'on', MAYFLY_UNPAID_BYTES: '100,100' }
  const server = await startServer(t, { ...ON, ...rates })
  const tries = Array.from({ length: 21 }, () =>
    fetch(`${server.url}/api/catch/catch_0000000000000000000000`, {
      headers: { authorization: 'Bearer nothing' },
    }),
  )
  assert.ok((await Promise.all(tries)).some(({ status }) => status === 429))
  for (let i = 0; i < 121; i++) await fetch(`${server.url}/api/catalog`)
  const whisper = await fetch(`${server.url}/api/payments/whisper`, {
    method: 'POST',
    headers: {
      'content-type': 'application/octet-stream',
      'idempotency-key': 'a key of eight',
      'x-whisper-plan': 'spark',
    },
    body: 'x'.repeat(200),
  })
  assert.equal(whisper.status, 429)
  const { series } = await scrape(server)
  assert.deepEqual(
    ['badBearer', 'catalog', 'room'].map((limit) =>
      series.get(`mayfly_rate_limited_total{limit="${limit}"}`),
    ),
    [1, 1, 1],
  )
})

test('what becomes of an alert is counted', async (t) => {
  const receiver = await aReceiver(t)
  const server = await startServer(t, { ...ON, MAYFLY_ALLOWED_HOSTS: receiver.host })
  const monitor = await aMonitor(server, 'standard')
  await server.mayfly.pulse(monitor).update({ expectedIntervalSeconds: 60, graceSeconds: 60 })
  await put(server, monitor, [{ url: receiver.url }])
  await ping(server, monitor)
  await live(server, 180_000)
  await receiver.until('pulse.late')
  await until('the attempt is counted', async () => {
    const { series } = await scrape(server)
    return series.get('mayfly_alert_attempts_total{outcome="2xx"}') === 1
  })
})

test('orders are counted every 15 seconds at most, whoever scrapes', async (t) => {
  const server = await startServer(t, ON)
  const pending = async () => (await scrape(server)).series.get('mayfly_orders{state="pending"}')
  assert.equal(await pending(), 0)
  await purchase(server, {})
  assert.equal(await pending(), 0)
  server.clock.advance(15_000)
  assert.equal(await pending(), 1)
})

test('a store that fails is counted, and a refused condition is not', async (t) => {
  const server = await startServer(t, ON)
  const first = await purchase(server, { key: 'the same key' })
  await purchase(server, { key: 'the same key' })
  assert.equal(first.status, 402)
  const errors = async () =>
    (await scrape(server)).series.get('mayfly_store_errors_total{operation="read"}')
  assert.equal(await errors(), 0)
  await query(server, 'alter table purchase_order rename to elsewhere')
  assert.equal((await poll(server, quoteOf(first).orderId)).status, 500)
  assert.equal(await errors(), 1)
  await query(server, 'alter table elsewhere rename to purchase_order')
})

suite('the listener', () => {
  test('the metrics listener is apart from the service, takes GET and HEAD alone, and ends with it', async (t) => {
    const server = await startServer(t, { MAYFLY_METRICS_PORT: String(await freePort()) })
    const url = listener(server)
    assert.equal((await fetch(`${server.url}/metrics`)).status, 404)
    assert.equal((await fetch(url, { method: 'HEAD' })).status, 200)
    assert.equal((await fetch(url, { method: 'POST' })).status, 405)
    assert.equal((await fetch(new URL('/other', url))).status, 404)
    await server.stop()
    await assert.rejects(fetch(url))
  })

  test('the metrics listener is off unless it is asked for', async (t) => {
    const server = await startServer(t)
    assert.equal(
      server.logged.some((line) => line.includes('metrics')),
      false,
    )
  })

  test('the metrics listener on a port that is taken stops the start with a sentence', async (t) => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    t.after(() => taken.close())
    const address = taken.address()
    const port = typeof address === 'object' ? String(address?.port) : ''
    await assert.rejects(startServer(t, { MAYFLY_METRICS_PORT: port }), {
      name: 'ConfigError',
      message: /^MAYFLY_METRICS_HOST and MAYFLY_METRICS_PORT .* \(EADDRINUSE\)\.$/,
    })
  })
})

test('what is read at a scrape stands under its own name', async () => {
  const lines = await scrapedLines(async () => [])
  for (const line of [
    'mayfly_checkout_open 1',
    'mayfly_clock_held 0',
    'mayfly_open_streams{route="/stream"} 2',
    'mayfly_reserved_bytes{kind="answer"} 3',
    'mayfly_answers_waiting 4',
    'mayfly_readers_closed_total{reason="room"} 5',
    'mayfly_readers_closed_total{reason="stalled"} 6',
    'mayfly_readers_closed_total{reason="idle"} 7',
    'mayfly_searches 8',
    'mayfly_orders{state="pending"} 0',
  ]) {
    assert.ok(lines.includes(line), line)
  }
})

test('what does not come from the store is scraped while the store is away', async () => {
  const lines = await scrapedLines(async () => {
    throw new Error('the store is away')
  })
  assert.ok(lines.includes('mayfly_checkout_open 1'))
  assert.ok(!lines.some((line) => line.startsWith('mayfly_orders{')))
})

test('a node that answers and is not in sync counts as up alone, on the network that it named last', async () => {
  const metrics = createMetrics()
  const told = async () =>
    (await metrics.text()).match(/^mayfly_node_(?:up|synced|info)\b.* \d/gm)?.join(', ')
  metrics.node.infoReceived({ network: 'mainnet', synced: true, nodeId: null })
  metrics.node.infoReceived({ network: 'regtest', synced: false, nodeId: null })
  const named = 'mayfly_node_info{network="regtest"} 1'
  assert.equal(await told(), `mayfly_node_up 1, mayfly_node_synced 0, ${named}`)
  metrics.node.infoReceived(null)
  assert.equal(await told(), `mayfly_node_up 0, mayfly_node_synced 0, ${named}`)
})

async function scrapedLines(scan: Db['scan']): Promise<string[]> {
  const metrics = createMetrics()
  metrics.watch({
    db: { engine: 'sqlite', scan },
    clock: systemClock,
    isSelling: () => true,
    isClockHeld: () => false,
    streams: () => new Map([['/stream', 2]]),
    memory: {
      bytesByKind: () => ({ inbox: 0, unpaid: 0, paid: 0, message: 0, answer: 3 }),
      waiting: () => 4,
      closedReaders: () => 5,
    },
    connections: { closed: () => ({ stalled: 6, idle: 7 }) },
    searches: () => 8,
  })
  return (await metrics.text()).split('\n')
}
