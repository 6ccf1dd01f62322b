/** What a test asks of the tables of inboxes. */
import { createInboxStore } from '../../src/catch/store.ts'
import type { Db } from '../../src/db/db.ts'

/** The number that the events of an inbox name it by, or 0 if there is no such inbox. */
export const numberOf = async (db: Db, publicId: string): Promise<number> =>
  (await createInboxStore(db).inbox(publicId))?.number ?? 0
