/**
 * Hints: "something changed at this resource; look". They make waiting fast and carry no truth: one
 * may be lost, doubled or late, so whoever listens reads the store, and looks now and then unasked.
 */

/** Listeners of one topic at once, on one server. */
const LISTENERS_MOST = 64

export type Hints = {
  /** Wakes whoever listens to this topic, on any instance. Returns at once, and never throws. */
  tell(topic: string): void
  /** Calls `heard` when there may be news; returns how to stop, or null where too many listen. */
  listen(topic: string, heard: () => void): (() => void) | null
  close(): Promise<void>
}

/** The listeners of one process, which is all there is of them where it has the store alone. */
export type LocalHints = Hints & {
  /** Wakes every listener there is. */
  tellAll(): void
  /** What is listened to now. */
  topics(): Iterable<string>
  isIdle(): boolean
}

export function createHints(): LocalHints {
  const listeners = new Map<string, Set<() => void>>()
  return {
    tell(topic) {
      for (const heard of listeners.get(topic) ?? []) heard()
    },
    tellAll() {
      for (const some of listeners.values()) for (const heard of some) heard()
    },
    listen(topic, heard) {
      const some = listeners.get(topic) ?? new Set()
      if (some.size >= LISTENERS_MOST) return null
      // Of its own, so that one function may listen twice and each end takes away one.
      const own = (): void => heard()
      listeners.set(topic, some.add(own))
      return () => {
        some.delete(own)
        if (some.size === 0 && listeners.get(topic) === some) listeners.delete(topic)
      }
    },
    topics: () => listeners.keys(),
    isIdle: () => listeners.size === 0,
    async close() {
      listeners.clear()
    },
  }
}
