/** All queries of GATE. The statements of each table are in the file of its queries. */
import type { Db } from '../db/db.ts'
import { createIntentStore } from './intent-store.ts'
import { createProjectStore } from './project-store.ts'
import { createReceiptStore } from './receipt-store.ts'

export const createGateStore = (db: Db) => ({
  ...createProjectStore(db),
  ...createIntentStore(db),
  ...createReceiptStore(db),
})
