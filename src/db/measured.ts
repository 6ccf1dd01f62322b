/** A store that reports how long its operations take. */
import { type Db, UnitRefused } from './db.ts'

export type StoreOperation = 'read' | 'write'

export type StoreObserver = {
  began(operation: StoreOperation): void
  /** A refused unit has not failed: the refusal is its answer. */
  ended(operation: StoreOperation, seconds: number, hasFailed: boolean): void
}

/** The same store, observed. */
export function measuredDb(db: Db, observer: StoreObserver): Db {
  async function measured<T>(operation: StoreOperation, work: () => Promise<T>): Promise<T> {
    observer.began(operation)
    const startedAt = performance.now()
    let hasFailed = false
    try {
      return await work()
    } catch (error) {
      hasFailed = !(error instanceof UnitRefused)
      throw error
    } finally {
      observer.ended(operation, (performance.now() - startedAt) / 1000, hasFailed)
    }
  }
  return {
    ...db,
    read: (text, ...values) => measured('read', () => db.read(text, ...values)),
    scan: (query) => measured('read', () => db.scan(query)),
    write: (unit) => measured('write', () => db.write(unit)),
  }
}
