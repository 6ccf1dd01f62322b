/** This browser's storage, which a person or a policy may have switched off. */

/** Outlives the tab. */
export const browserStore = createStore(() => localStorage)
/** Lives as long as the tab. */
export const tabStore = createStore(() => sessionStorage)

/** @param storage throws where it is blocked. */
function createStore(storage: () => Storage) {
  /** What could not be stored, for as long as the page lives. */
  const instead = new Map<string, string>()
  return {
    read(name: string): unknown {
      try {
        return JSON.parse(instead.get(name) ?? storage().getItem(name) ?? 'null')
      } catch {
        return null
      }
    },
    /** Returns whether it outlives the page. What is null is removed. */
    write(name: string, value: unknown): boolean {
      instead.delete(name)
      try {
        if (value === null) storage().removeItem(name)
        else storage().setItem(name, JSON.stringify(value))
        return true
      } catch {
        if (value !== null) instead.set(name, JSON.stringify(value))
        return value === null
      }
    },
  }
}

/** Whether this browser stores nothing for this site. */
export function isStorageBlocked(): boolean {
  try {
    return !localStorage
  } catch {
    return true
  }
}

export const BLOCKED =
  'This browser stores nothing for this site. Closing this page loses each key or code that you have not saved.'
