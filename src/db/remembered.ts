/** Remembers facts of rows, so that a hot path reads them once. A use of facts that are out of date is refused. */
import { LRUCache } from 'lru-cache'

/** Enough for the rows in use. A forgotten one is read again. */
const MAX_REMEMBERED = 20_000

/**
 * @param read finds the facts in the store. A null is not remembered.
 * @param sizeOf how many usual rows these facts take the memory of.
 */
export function createRemembered<Fact extends object>(
  read: (id: string) => Promise<Fact | null>,
  sizeOf: (fact: Fact) => number = () => 1,
) {
  // Grows as it fills; with `max` it would take all of its memory at once.
  const remembered = new LRUCache<string, Fact>({
    maxSize: MAX_REMEMBERED,
    sizeCalculation: sizeOf,
  })
  return {
    /** The facts of a row, from memory or from the store; null if there is no such row. */
    async of(id: string): Promise<Fact | null> {
      const known = remembered.get(id)
      if (known) return known
      const found = await read(id)
      if (found) remembered.set(id, found)
      return found
    },
    /** Reads the facts again next time, because the row is gone or refused a use. */
    forget: (id: string) => void remembered.delete(id),
  }
}
