/** What work leaves behind in this process: timers, and listeners of the process. */
import { createHook } from 'node:async_hooks'
import type { After } from './folder.ts'

export type Leftovers = { timers: number; listeners: number }

/** Counts from now on. Timers that were set before are not counted when they end. */
export function countLeftovers(t: After): () => Leftovers {
  const timers = new Set<number>()
  const hook = createHook({
    init(id, type) {
      if (type === 'Timeout') timers.add(id)
    },
    destroy: (id) => void timers.delete(id),
  })
  hook.enable()
  t.after(() => hook.disable())
  return () => ({
    timers: timers.size,
    listeners: process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0),
  })
}
