/**
 * The metrics of one service, for Prometheus. docs/reference/log-metrics.md lists them all. The rooms below report to small
 * observers and do not know this room. Each file here has the metrics of one subject.
 */
import { readFileSync } from 'node:fs'
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { StoreObserver } from '../db/measured.ts'
import type { AnswerObserver } from '../http/server/metrics.ts'
import type { WorkOutcome } from '../http/turns.ts'
import type { Log } from '../lib/log.ts'
import type { NodeObserver } from '../lightning/measured.ts'
import { countRateLimited, observeResponses } from './http.ts'
import { createInstruments, type Instruments } from './instruments.ts'
import { observeNode } from './node.ts'
import { createOperatorPage, type PageSources } from './operator-page.ts'
import { countEvents } from './payments.ts'
import { observeStore } from './store.ts'
import { type Stored, watchStored } from './stored.ts'
import { type Usage, watchUsage } from './usage.ts'

export type Metrics = {
  store: StoreObserver
  node: NodeObserver
  response: AnswerObserver
  rateLimited(limit: string): void
  purged(product: string, rows: number): void
  searchEnded(outcome: WorkOutcome): void
  /** A request took this many bytes of its inbox. */
  ingested(bytes: number): void
  clockReanchored(): void
  /** An attempt to bring an alert to a destination ended: 2xx, 4xx, 5xx, or failed. */
  alertTried(outcome: string): void
  /** The same log, but its events are counted. */
  countedLog(log: Log): Log
  /** Sets the sources that are read at each scrape. */
  watch(sources: Stored & Usage & PageSources): void
  contentType: string
  text(): Promise<string>
  /** The operator's page, in HTML. */
  page(): Promise<string>
}

/** Metrics on their own registry. */
export function createMetrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const instruments = createInstruments(registry)
  let page = async (): Promise<string> => ''
  const build = instruments.gauge('build_info', 'The version that runs; always 1.', [
    'version',
    'node',
  ])
  build.set({ version: version(), node: process.versions.node }, 1)
  return {
    store: observeStore(instruments),
    node: observeNode(instruments),
    response: observeResponses(instruments),
    rateLimited: countRateLimited(instruments),
    alertTried: countAlerts(instruments),
    purged: countPurged(instruments),
    searchEnded: countSearches(instruments),
    ingested: countIngested(instruments),
    clockReanchored: countReanchors(instruments),
    countedLog: countEvents(instruments),
    watch(sources) {
      watchStored(instruments, sources)
      watchUsage(instruments, sources)
      page = createOperatorPage(registry, sources)
    },
    contentType: registry.contentType,
    text: () => registry.metrics(),
    page: () => page(),
  }
}

function countIngested({ counter }: Instruments): Metrics['ingested'] {
  const stored = counter('ingest_kept_bytes_total', 'What stored requests took of their inboxes.')
  return (bytes) => stored.inc(bytes)
}

function countSearches({ counter }: Instruments): Metrics['searchEnded'] {
  const ended = counter('searches_total', 'Searches of inboxes, by how they ended.', ['outcome'])
  for (const outcome of ['done', 'gone', 'refused']) ended.inc({ outcome }, 0)
  return (outcome) => ended.inc({ outcome })
}

function countAlerts({ counter }: Instruments): Metrics['alertTried'] {
  const tried = counter('alert_attempts_total', 'Attempts to bring an alert to a destination.', [
    'outcome',
  ])
  for (const outcome of ['2xx', '4xx', '5xx', 'failed']) tried.inc({ outcome }, 0)
  return (outcome) => tried.inc({ outcome })
}

function countPurged({ counter }: Instruments): Metrics['purged'] {
  const purged = counter('purged_rows_total', 'Rows that were over and are gone.', ['product'])
  return (product, rows) => purged.inc({ product }, rows)
}

function countReanchors({ counter }: Instruments): Metrics['clockReanchored'] {
  const reanchors = counter(
    'clock_reanchors_total',
    'Times that the clock jumped, or that the service had been away.',
  )
  return () => reanchors.inc()
}

function version(): string {
  const file = new URL('../../package.json', import.meta.url)
  const { version } = JSON.parse(readFileSync(file, 'utf8')) as { version: string }
  return version
}
