/** What changes events. The engines differ in their tables; readers see the same in both. */
import { type Db, limitedTo } from '../db/db.ts'
import { type EventWrites, insertInOne } from './event-insert.ts'
import { createPlaces } from './event-places.ts'

export const createEventWrites = (db: Db): EventWrites =>
  db.engine === 'sqlite' ? createPlaces(db) : POSTGRES

const POSTGRES: EventWrites = {
  insert: insertInOne,
  purge: (publicId, max) => [
    {
      text: `delete from catch_event where public_id = $1 and sequence in (
          select sequence from catch_event where public_id = $1 order by sequence ${limitedTo(2)})
        returning sequence`,
      values: [publicId, max],
    },
  ],
  tidy: async () => undefined,
}
