/** Metrics of the store's operations. */
import type { StoreObserver, StoreOperation } from '../db/measured.ts'
import type { Instruments } from './instruments.ts'

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
  const byOperation = {
    read: instrumentsOf('read'),
    write: instrumentsOf('write'),
    tx: instrumentsOf('tx'),
  }
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
