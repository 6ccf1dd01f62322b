/** Metrics of what the rooms below report: answers of the server, calls to the node, operations of the store. */
import type { StoreObserver, StoreOperation } from '../db/measured.ts'
import type { AnswerObserver } from '../http/server/metrics.ts'
import type { NodeCall, NodeObserver } from '../lightning/measured.ts'
import type { Instruments } from './instruments.ts'

export function observeResponses({ counter, histogram }: Instruments): AnswerObserver {
  const labels = ['method', 'route', 'status']
  const requests = counter('http_requests_total', 'Requests that were answered.', labels)
  const duration = histogram(
    'http_request_duration_seconds',
    'From the headers of a request to the end of its answer; streams and waits are not in it.',
    labels,
  )
  const ofKind = (...kind: [string, string, string]) => ({
    count: requests.labels(...kind),
    durations: duration.labels(...kind),
  })
  /** Each is made once, so that a request makes no labels. There are as many as routes and their methods. */
  const known = new Map<string, ReturnType<typeof ofKind>>()
  return ({ method, route, statusClass }, seconds) => {
    const name = `${method} ${statusClass} ${route}`
    const of = known.get(name) ?? ofKind(method, route, statusClass)
    if (!known.has(name)) known.set(name, of)
    of.count.inc()
    if (seconds !== null) of.durations.observe(seconds)
  }
}

const CALLS: NodeCall[] = ['info', 'create_invoice', 'lookup_invoice']

export function observeNode({ counter, gauge, histogram }: Instruments): NodeObserver {
  const duration = histogram(
    'node_call_duration_seconds',
    'Calls to the Lightning node, failed ones too.',
    ['call'],
  )
  const errors = counter('node_errors_total', 'Calls to the Lightning node that failed.', ['call'])
  for (const call of CALLS) errors.inc({ call }, 0)
  const up = gauge('node_up', 'Whether the Lightning node answered when it was last asked.')
  const synced = gauge('node_synced', 'Whether the node said that it is in sync with the chain.')
  const info = gauge('node_info', 'The network of the node; always 1.', ['network'])
  return {
    ended(call, seconds, hasFailed) {
      duration.observe({ call }, seconds)
      if (hasFailed) errors.inc({ call })
    },
    infoReceived(node) {
      up.set(node === null ? 0 : 1)
      synced.set(node?.synced ? 1 : 0)
      if (node === null) return
      info.reset()
      info.set({ network: node.network }, 1)
    },
  }
}

export function observeStore({ counter, gauge, histogram }: Instruments): StoreObserver {
  const labels = ['operation']
  const duration = histogram(
    'store_duration_seconds',
    'From asking the store to its answer; a write is durable then.',
    labels,
  )
  const errors = counter('store_errors_total', 'Operations that the store failed.', labels)
  const pending = gauge('store_queue_depth', 'Operations that wait for the store.', labels)
  const instrumentsOf = (operation: StoreOperation) => {
    pending.set({ operation }, 0)
    errors.inc({ operation }, 0)
    return {
      duration: duration.labels(operation),
      errors: errors.labels(operation),
      pending: pending.labels(operation),
    }
  }
  const byOperation = { read: instrumentsOf('read'), write: instrumentsOf('write') }
  return {
    began: (operation) => byOperation[operation].pending.inc(),
    ended(operation, seconds, hasFailed) {
      const instruments = byOperation[operation]
      instruments.pending.dec()
      instruments.duration.observe(seconds)
      if (hasFailed) instruments.errors.inc()
    },
  }
}
