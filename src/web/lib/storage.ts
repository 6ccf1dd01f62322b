/** This browser's storage, which a person or a policy may have switched off. */

type Kind = 'localStorage' | 'sessionStorage'

/** What could not be stored, for as long as the page lives. */
const instead = {
  localStorage: new Map<string, string>(),
  sessionStorage: new Map<string, string>(),
}

function storageOf(kind: Kind): Storage | null {
  try {
    return globalThis[kind]
  } catch {
    return null
  }
}

function read(kind: Kind, name: string): unknown {
  try {
    const text = instead[kind].get(name) ?? storageOf(kind)?.getItem(name)
    return JSON.parse(text ?? 'null')
  } catch {
    return null
  }
}

/** Returns whether it outlives the page. What is null is removed. */
function write(kind: Kind, name: string, value: unknown): boolean {
  instead[kind].delete(name)
  try {
    const storage = globalThis[kind]
    if (value === null) storage.removeItem(name)
    else storage.setItem(name, JSON.stringify(value))
    return true
  } catch {
    if (value !== null) instead[kind].set(name, JSON.stringify(value))
    return value === null
  }
}

/** Outlives the tab. */
export const browserStore = {
  read: (name: string): unknown => read('localStorage', name),
  write: (name: string, value: unknown): boolean => write('localStorage', name, value),
}

/** Lives as long as the tab. */
export const tabStore = {
  read: (name: string): unknown => read('sessionStorage', name),
  write: (name: string, value: unknown): boolean => write('sessionStorage', name, value),
}

/** Whether this browser stores nothing for this site. */
export const isStorageBlocked = (): boolean => storageOf('localStorage') === null

export const BLOCKED =
  'This browser stores nothing for this site. You can buy, but closing this page loses a key or code that you have not saved.'
