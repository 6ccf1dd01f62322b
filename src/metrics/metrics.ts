/**
 * The metrics of one service, for Prometheus. The rooms below report to small observers and do not know this room.
 * Each file here has the metrics of one subject.
 */
import { collectDefaultMetrics, Registry } from 'prom-client'
import { VERSION } from '../http/version.ts'
import { createInstruments } from './instruments.ts'
import { observeNode, observeResponses, observeStore } from './observed.ts'
import { createOperatorPage, type PageSources } from './operator-page.ts'
import { countEvents } from './payments.ts'
import { type Stored, watchStored } from './stored.ts'
import { type Usage, watchUsage } from './usage.ts'

export type Metrics = ReturnType<typeof createMetrics>

/** Metrics on their own registry. */
export function createMetrics() {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const instruments = createInstruments(registry)
  const { count, counter, gauge } = instruments
  let page = async (): Promise<string> => ''
  const build = gauge('build_info', 'The version that runs; always 1.', ['version', 'node'])
  build.set({ version: VERSION, node: process.versions.node }, 1)
  const kept = counter('ingest_kept_bytes_total', 'What stored requests took of their inboxes.')
  const reanchors = counter(
    'clock_reanchors_total',
    'Times that the clock jumped, or that the service had been away.',
  )
  return {
    store: observeStore(instruments),
    node: observeNode(instruments),
    response: observeResponses(instruments),
    rateLimited: count('rate_limited_total', 'Requests answered 429, by limit.', {
      label: 'limit',
    }),
    /** An attempt to bring an alert to a destination ended. */
    alertTried: count('alert_attempts_total', 'Attempts to bring an alert to a destination.', {
      label: 'outcome',
      known: ['2xx', '4xx', '5xx', 'failed'],
    }),
    purged: count('purged_rows_total', 'Rows that were over and are gone.', { label: 'product' }),
    /** A request took this many bytes of its inbox. */
    ingested: (bytes: number): void => kept.inc(bytes),
    clockReanchored: (): void => reanchors.inc(),
    /** The same log, but its events are counted. */
    countedLog: countEvents(instruments),
    /** Sets the sources that are read at each scrape. */
    watch(sources: Stored & Usage & PageSources): void {
      watchStored(instruments, sources)
      watchUsage(instruments, sources)
      page = createOperatorPage(registry, sources)
    },
    contentType: registry.contentType,
    text: (): Promise<string> => registry.metrics(),
    /** The operator's page, in HTML. */
    page: (): Promise<string> => page(),
  }
}
