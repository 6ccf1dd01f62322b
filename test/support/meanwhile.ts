/** What another process does at an awkward moment, for tests of one room. */
import type { Db, Statement } from '../../src/db/db.ts'
import { unit } from './unit.ts'

/** The store, in which these statements are written right before the first write through it, and `then` after that. */
export function meanwhile(db: Db, first: Statement, then?: Statement): Db {
  let isFirst = true
  return {
    ...db,
    async write(asked) {
      if (!isFirst) return db.write(asked)
      isFirst = false
      await db.write(unit(first))
      try {
        return await db.write(asked)
      } finally {
        if (then) await db.write(unit(then))
      }
    },
  }
}
