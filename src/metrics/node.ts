/** Metrics of the Lightning node. */
import type { NodeCall, NodeObserver } from '../lightning/measured.ts'
import type { Instruments } from './instruments.ts'

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
