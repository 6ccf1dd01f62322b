/**
 * SQLite in memory, which a thread opens once: every run begins a transaction that its end rolls back, so that the
 * next one finds the empty store again, and the statements that are prepared already.
 */
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import type { Row, Value } from '../../../src/db/db.ts'

export type Database = ReturnType<typeof databaseOn>

type Prepared = { statement: StatementSync; hasRows: boolean }

let ofThread: { image: Uint8Array; database: Database } | null = null

/** The store of this thread, empty. Only one run at a time may use it. */
export function emptyDatabase(image: Uint8Array): Database {
  if (ofThread?.image !== image) {
    ofThread = { image, database: databaseOn(filledFrom(image)) }
  }
  return ofThread.database
}

/** Another one, with a copy in it. */
export function databaseFrom(copy: Uint8Array): Database {
  const sqlite = filledFrom(copy)
  return { ...databaseOn(sqlite), close: () => sqlite.close() }
}

function databaseOn(sqlite: DatabaseSync) {
  const known = new Map<string, Prepared>()
  sqlite.exec('begin')
  const begin = sqlite.prepare('savepoint unit')
  const release = sqlite.prepare('release unit')
  let canUndo = false

  function prepare(text: string): Prepared {
    const statement = sqlite.prepare(text.replaceAll(/\$(\d+)/g, '?$1'))
    const prepared = { statement, hasRows: statement.columns().length > 0 }
    known.set(text, prepared)
    return prepared
  }

  const database = {
    execute(text: string, values: Value[]): { rows: Row[]; count: number } {
      const { statement, hasRows } = known.get(text) ?? prepare(text)
      if (!hasRows) return { rows: [], count: Number(statement.run(...values).changes) }
      const rows = statement.all(...values) as Row[]
      return { rows, count: rows.length }
    },
    /** What `work` changes is undone if it throws. */
    undoing<T>(work: () => T): T {
      begin.run()
      try {
        const result = work()
        release.run()
        return result
      } catch (error) {
        sqlite.exec('rollback to unit; release unit')
        throw error
      }
    },
    /** From here on `undo` undoes. Nothing if it does already. */
    keepUndo(): void {
      if (!canUndo) sqlite.exec('savepoint flushed')
      canUndo = true
    },
    /** Undoes what was changed since `keepUndo`. */
    undo(): void {
      if (canUndo) sqlite.exec('rollback to flushed')
      database.forgetUndo()
    },
    /** What was changed so far stays. */
    forgetUndo(): void {
      if (canUndo) sqlite.exec('release flushed')
      canUndo = false
    },
    copy: (): Uint8Array => sqlite.serialize(),
    /** Ends the use of it. A database of this thread's store is as it was at first. */
    close(): void {
      sqlite.exec('rollback; begin')
      canUndo = false
    },
  }
  return database
}

/**
 * Tables in memory. A database that was `deserialize`d has its pages twice, as a file that is cached, and `serialize`
 * shows nothing of it that is not committed.
 */
function filledFrom(image: Uint8Array): DatabaseSync {
  const sqlite = new DatabaseSync(':memory:', { enableForeignKeyConstraints: false })
  sqlite.exec(
    `pragma journal_mode = memory; pragma temp_store = memory; attach ':memory:' as image`,
  )
  sqlite.deserialize(image, { dbName: 'image' })
  const parts = sqlite
    .prepare(
      `select type, name, sql from image.sqlite_schema where name not like 'sqlite!_%' escape '!'`,
    )
    .all() as { type: string; name: string; sql: string }[]
  const tables = parts.filter(({ type }) => type === 'table')
  for (const { sql } of tables) sqlite.exec(sql)
  for (const name of [...tables.map((table) => table.name), 'sqlite_sequence']) {
    sqlite.exec(`delete from main.${name}; insert into main.${name} select * from image.${name}`)
  }
  // Triggers are made last: the rows have seen theirs.
  for (const { type, sql } of parts) if (type !== 'table') sqlite.exec(sql)
  sqlite.exec('detach image; pragma foreign_keys = on')
  return sqlite
}
