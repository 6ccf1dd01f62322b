/** What a store knows of itself: values by name. */
import type { Db } from './db.ts'

/** The value of a name, or null. */
export async function metaOf(db: Pick<Db, 'read'>, name: string): Promise<string | null> {
  const [row] = await db.read<{ value: string }>('select value from meta where name = $1', name)
  return row?.value ?? null
}

/** Notes a value if the name has none. @returns the name's value. */
export async function noteOnce(db: Db, name: string, value: string): Promise<string> {
  await db.write({
    lockKey: name,
    statements: {
      note: {
        text: 'insert into meta (name, value) values ($1, $2) on conflict (name) do nothing',
        values: [name, value],
      },
    },
  })
  return (await metaOf(db, name)) ?? value
}
