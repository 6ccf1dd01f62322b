/**
 * Hints: "this resource has changed, read it again". A hint may be lost, doubled or late, so nothing depends
 * on it: a listener reads the store, and also polls it slowly.
 */

/** Concurrent listeners of one topic, on one instance. */
const MAX_LISTENERS = 64

export type Hints = {
  /** Wakes the listeners of this topic on every instance. Returns at once, and never throws. */
  notify(topic: string): void
  /** Calls `onHint` when there may be news. Returns a function that stops, or null with too many listeners. */
  listen(topic: string, onHint: () => void): (() => void) | null
  close(): Promise<void>
}

/** Hints within one process. A store that only one process uses needs no others. */
export type LocalHints = Hints & {
  isIdle(): boolean
}

export function createHints(): LocalHints {
  const listeners = new Map<string, Set<() => void>>()
  return {
    notify(topic) {
      for (const onHint of listeners.get(topic) ?? []) onHint()
    },
    listen(topic, onHint) {
      const some = listeners.get(topic) ?? new Set()
      if (some.size >= MAX_LISTENERS) return null
      // A function of its own: the same callback may listen twice, and each stop removes one.
      const own = (): void => onHint()
      listeners.set(topic, some.add(own))
      return () => {
        some.delete(own)
        if (some.size === 0 && listeners.get(topic) === some) listeners.delete(topic)
      }
    },
    isIdle: () => listeners.size === 0,
    async close() {
      listeners.clear()
    },
  }
}
