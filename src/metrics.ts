/**
 * The metrics of one service, for Prometheus: every name, and how it gets its value. The rooms
 * below tell small observers what they do and know nothing of this. docs/metrics.md lists all.
 */
import { readFileSync } from 'node:fs'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Db } from './db/db.ts'
import type { StoreObserver, StoreOperation } from './db/measured.ts'
import type { Backpressure } from './http/backpressure.ts'
import type { WorkOutcome } from './http/fair-scheduler.ts'
import type { AnswerObserver, Refusal } from './http/metrics.ts'
import type { ResponseBudget } from './http/response-budget.ts'
import type { Clock } from './lib/clock.ts'
import type { Log } from './lib/log.ts'
import type { NodeCall, NodeObserver } from './lightning/measured.ts'

/** What is in the store is counted at most this often, however many scrape. */
const COUNT_EVERY_MS = 15_000

/** From a store's write to a request that a human still waits for. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

const STATES = ['opening', 'pending', 'settled', 'dead', 'paid_unfulfilled', 'refunded']
const CALLS: NodeCall[] = ['info', 'create_invoice', 'lookup_invoice']

export type Metrics = {
  store: StoreObserver
  node: NodeObserver
  answered: AnswerObserver
  refused(refusal: Refusal): void
  purged(product: string, rows: number): void
  searched(outcome: WorkOutcome): void
  kept(bytes: number): void
  /** The clock was found where it should not be. */
  jumped(): void
  /** The same log, heard: what payment logs is what payment did. */
  heard(log: Log): Log
  /** What is asked for when somebody scrapes. */
  watch(asked: {
    db: Pick<Db, 'read'>
    clock: Clock
    isSelling: () => boolean
    isDeletionHeld: () => boolean
    streams: () => ReadonlyMap<string, number>
    bodies: () => { bodies: number; bytes: number }
    responseBudget: Pick<ResponseBudget, 'reservedBytes' | 'waiting' | 'closedReaders'>
    backpressure: Pick<Backpressure, 'closedSockets'>
    searches: () => { running: number; waiting: number }
    purchaseBytes: () => Record<string, number>
  }): void
  contentType: string
  text(): Promise<string>
}

/** Metrics on a registry of their own. */
export function createMetrics(): Metrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })

  const counter = (name: string, help: string, labelNames: string[] = []): Counter =>
    new Counter({ name: `mayfly_${name}`, help, labelNames, registers })
  const gauge = (name: string, help: string, labelNames: string[] = []): Gauge =>
    new Gauge({ name: `mayfly_${name}`, help, labelNames, registers })
  const histogram = (name: string, help: string, labelNames: string[]): Histogram =>
    new Histogram({ name: `mayfly_${name}`, help, labelNames, buckets: SECONDS, registers })

  gauge('build_info', 'The version that runs; always 1.', ['version', 'node']).set(
    { version: version(), node: process.versions.node },
    1,
  )
  return {
    store: observeStore(),
    node: observeNode(),
    answered: observeAnswers(),
    refused: countRefusals(),
    purged: countPurged(),
    searched: countSearches(),
    kept: countKept(),
    jumped: countJumps(),
    heard: hear(),
    watch,
    contentType: registry.contentType,
    text: () => registry.metrics(),
  }

  function observeAnswers(): AnswerObserver {
    const labels = ['method', 'route', 'status']
    const requests = counter('http_requests_total', 'Requests that were answered.', labels)
    const duration = histogram(
      'http_request_duration_seconds',
      'From the headers of a request to the end of its answer; streams are not in it.',
      labels,
    )
    return ({ method, route, statusClass }) => {
      const one = requests.labels(method, route, statusClass)
      const lasting = duration.labels(method, route, statusClass)
      return (seconds) => {
        one.inc()
        if (seconds !== null) lasting.observe(seconds)
      }
    }
  }

  function observeStore(): StoreObserver {
    const duration = histogram(
      'store_duration_seconds',
      'From asking the store to its answer; a write is durable then.',
      ['operation'],
    )
    const errors = counter('store_errors_total', 'Operations that the store failed.', ['operation'])
    const pending = gauge('store_queue_depth', 'Operations that wait for the store.', ['operation'])
    const handlesOf = (operation: StoreOperation) => {
      pending.set({ operation }, 0)
      errors.inc({ operation }, 0)
      return {
        duration: duration.labels(operation),
        errors: errors.labels(operation),
        pending: pending.labels(operation),
      }
    }
    const handles = { read: handlesOf('read'), write: handlesOf('write'), tx: handlesOf('tx') }
    return {
      began: (operation) => handles[operation].pending.inc(),
      ended(operation, seconds, hasFailed) {
        const handle = handles[operation]
        handle.pending.dec()
        handle.duration.observe(seconds)
        if (hasFailed) handle.errors.inc()
      },
    }
  }

  function observeNode(): NodeObserver {
    const duration = histogram(
      'node_call_duration_seconds',
      'Calls to the Lightning node, failed ones too.',
      ['call'],
    )
    const errors = counter('node_errors_total', 'Calls to the Lightning node that failed.', [
      'call',
    ])
    for (const call of CALLS) errors.inc({ call }, 0)
    const up = gauge('node_up', 'Whether the Lightning node answered when it was last asked.')
    const synced = gauge('node_synced', 'Whether the node said that it is in sync with the chain.')
    const info = gauge('node_info', 'The network of the node; always 1.', ['network'])
    return {
      ended(call, seconds, hasFailed) {
        duration.observe({ call }, seconds)
        if (hasFailed) errors.inc({ call })
      },
      said(node) {
        up.set(node === null ? 0 : 1)
        synced.set(node?.synced ? 1 : 0)
        if (node === null) return
        info.reset()
        info.set({ network: node.network }, 1)
      },
    }
  }

  function countRefusals(): Metrics['refused'] {
    const refused = counter('rate_limited_total', 'Requests answered 429, by limit.', ['limit'])
    return (limit) => refused.inc({ limit })
  }

  function countKept(): Metrics['kept'] {
    const kept = counter('ingest_kept_bytes_total', 'What stored requests took of their inboxes.')
    return (bytes) => kept.inc(bytes)
  }

  function countSearches(): Metrics['searched'] {
    const ended = counter('searches_total', 'Searches of inboxes, by how they ended.', ['outcome'])
    for (const outcome of ['done', 'gone', 'refused']) ended.inc({ outcome }, 0)
    return (outcome) => ended.inc({ outcome })
  }

  function countPurged(): Metrics['purged'] {
    const purged = counter('purged_rows_total', 'Rows that were over and are gone.', ['product'])
    return (product, rows) => purged.inc({ product }, rows)
  }

  function countJumps(): Metrics['jumped'] {
    const jumps = counter('clock_jumps_total', 'Times that the clock was not where it should be.')
    return () => jumps.inc()
  }

  function hear(): Metrics['heard'] {
    const product = ['product']
    const quoted = counter('orders_quoted_total', 'Orders that got their invoice.', product)
    const settled = counter('orders_settled_total', 'Orders paid and provisioned, by way.', [
      'product',
      'by',
    ])
    const sats = counter('settled_sats_total', 'What settled orders paid, in satoshis.', product)
    const delivered = counter('orders_delivered_total', 'Capabilities handed out.', product)
    const expired = counter('orders_expired_total', 'Orders not paid in time.', product)
    const unfulfilled = counter(
      'orders_paid_unfulfilled_total',
      'Orders paid that could not be provisioned: somebody is owed something.',
      product,
    )
    const unknown = counter(
      'invoice_unknown_total',
      'Look-ups of invoices that the node has never seen.',
    )
    const lost = counter(
      'orders_proven_unknown_total',
      'Payments proven to us whose order the store does not know: somebody is owed something.',
    )
    const gate = counter('gate_intents_total', 'Intents of GATE, quoted and authorized.', ['step'])
    const late = counter(
      'gate_late_authorizations_total',
      'Intents of GATE that were proven long after their invoice, and honoured.',
    )
    const givenBack = counter(
      'gate_give_backs_total',
      'Receipts of GATE that were given back: a project failed a paid request.',
    )
    const unhonoured = counter(
      'gate_unhonoured_total',
      'Payments of GATE that are proven and were not honoured: somebody is owed something.',
    )
    const on: Record<string, (facts: Record<string, unknown>) => void> = {
      'order.quoted': (facts) => quoted.inc(productOf(facts)),
      'order.settled': (facts) => {
        settled.inc({ ...productOf(facts), by: String(facts.by) })
        sats.inc(productOf(facts), Number(facts.amountSats))
      },
      'order.delivered': (facts) => delivered.inc(productOf(facts)),
      'order.dead': (facts) => expired.inc(productOf(facts)),
      'order.paid_unfulfilled': (facts) => unfulfilled.inc(productOf(facts)),
      'order.invoice_unknown': () => unknown.inc(),
      'order.proven_unknown': () => lost.inc(),
      'gate.quoted': () => gate.inc({ step: 'quoted' }),
      'gate.authorized': () => gate.inc({ step: 'authorized' }),
      'gate.authorized_late': () => late.inc(),
      'gate.given_back': () => givenBack.inc(),
      'gate.unhonoured': () => unhonoured.inc(),
    }
    return (log) => {
      const also =
        (write: Log['info']): Log['info'] =>
        (facts) => {
          on[facts.event]?.(facts)
          write(facts)
        }
      return {
        info: also((facts) => log.info(facts)),
        warn: also((facts) => log.warn(facts)),
        error: also((facts) => log.error(facts)),
      }
    }
  }

  function watch({
    db,
    clock,
    isSelling,
    isDeletionHeld,
    streams,
    bodies,
    responseBudget,
    backpressure,
    searches,
    purchaseBytes,
  }: Parameters<Metrics['watch']>[0]): void {
    let countedAt = Number.NEGATIVE_INFINITY
    new Gauge({
      name: 'mayfly_orders',
      help: 'Orders in the store, by state.',
      labelNames: ['state'],
      registers,
      async collect() {
        const now = clock.now()
        if (now >= countedAt && now - countedAt < COUNT_EVERY_MS) return
        countedAt = now
        // The index on the state has all that is counted. A store that is away says nothing.
        const rows = await db
          .read<{ state: string; orders: number }>(
            'select state, count(*) as orders from purchase_order group by state',
          )
          .catch(() => null)
        this.reset()
        if (rows === null) return
        for (const state of STATES) this.set({ state }, 0)
        for (const { state, orders } of rows) this.set({ state }, Number(orders))
      },
    })
    let summedAt = Number.NEGATIVE_INFINITY
    new Gauge({
      name: 'mayfly_whisper_unpaid_bytes',
      help: 'Bytes of WHISPER that wait for their payment, by part of the room.',
      labelNames: ['part'],
      registers,
      async collect() {
        const now = clock.now()
        if (now >= summedAt && now - summedAt < COUNT_EVERY_MS) return
        summedAt = now
        const rows = await db
          .read<{ scope: string; byte_count: number }>(
            `select scope, byte_count from whisper_unpaid where scope in ('common', 'small')`,
          )
          .catch(() => null)
        this.reset()
        if (rows === null) return
        for (const part of ['common', 'small']) this.set({ part }, 0)
        for (const { scope, byte_count: bytes } of rows) this.set({ part: scope }, Number(bytes))
      },
    })
    new Gauge({
      name: 'mayfly_checkout_open',
      help: 'Whether new orders are taken: the node answers, is in sync and on its network.',
      registers,
      collect() {
        this.set(isSelling() ? 1 : 0)
      },
    })
    new Gauge({
      name: 'mayfly_deletion_held',
      help: 'Whether deletion is held back now, because the clock is doubted.',
      registers,
      collect() {
        this.set(isDeletionHeld() ? 1 : 0)
      },
    })
    new Gauge({
      name: 'mayfly_open_streams',
      help: 'Streams of server-sent events, by route.',
      labelNames: ['route'],
      registers,
      collect() {
        for (const [route, open] of streams()) this.set({ route }, open)
      },
    })
    new Gauge({
      name: 'mayfly_searches',
      help: 'Searches of inboxes that run, and that wait for one of the same inbox.',
      labelNames: ['state'],
      registers,
      collect() {
        for (const [state, count] of Object.entries(searches())) this.set({ state }, count)
      },
    })
    new Gauge({
      name: 'mayfly_ingest_bodies',
      help: 'Requests to inboxes that are read or stored now.',
      registers,
      collect() {
        this.set(bodies().bodies)
      },
    })
    new Gauge({
      name: 'mayfly_ingest_body_bytes',
      help: 'What they hold in memory, and what is set aside for the rest of them.',
      registers,
      collect() {
        this.set(bodies().bytes)
      },
    })
    new Gauge({
      name: 'mayfly_answer_bytes_held',
      help: 'Bytes that answers and streams hold until their readers take them.',
      registers,
      collect() {
        this.set(responseBudget.reservedBytes())
      },
    })
    new Gauge({
      name: 'mayfly_answers_waiting',
      help: 'Answers and streams that wait for room.',
      registers,
      collect() {
        this.set(responseBudget.waiting())
      },
    })
    new Counter({
      name: 'mayfly_readers_closed_total',
      help: 'Connections that were closed: stalled, or the slowest where others had no room.',
      labelNames: ['reason'],
      registers,
      collect() {
        this.reset()
        this.inc({ reason: 'stalled' }, backpressure.closedSockets())
        this.inc({ reason: 'room' }, responseBudget.closedReaders())
      },
    })
    new Gauge({
      name: 'mayfly_purchase_body_bytes',
      help: 'What the bodies of purchases hold in memory, by room.',
      labelNames: ['room'],
      registers,
      collect() {
        for (const [room, bytes] of Object.entries(purchaseBytes())) this.set({ room }, bytes)
      },
    })
  }
}

const productOf = ({ product }: Record<string, unknown>) => ({ product: String(product) })

function version(): string {
  const file = new URL('../package.json', import.meta.url)
  const { version } = JSON.parse(readFileSync(file, 'utf8')) as { version: string }
  return version
}
