/** Queries for one row. */
import type { Db, Row, Value } from '../db/db.ts'

/** The first row of a query, or null where it has none. */
export async function firstRow<T extends Row>(
  db: Db,
  text: string,
  ...values: Value[]
): Promise<T | null> {
  const [row] = await db.read<T>(text, ...values)
  return row ?? null
}
