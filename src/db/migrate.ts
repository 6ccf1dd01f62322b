/**
 * Forward-only migrations: the files `migrations/0001-….sql` and up run once each, in order. One that ends in
 * `.sqlite.sql` runs on that engine only.
 */
import { readdir, readFile } from 'node:fs/promises'
import { type Db, StoreUnusable } from './db.ts'

/** What an engine needs besides the SQL that all of them share. */
export type Dialect = {
  engine: Db['engine']
  /** Replaces the words of a migration that the engine spells differently. */
  translate(sql: string): string
  /** Returns a row if the store has the table of migrations. */
  findMigrations: string
  /** Run first. The instance that starts first migrates, and the others wait for it. */
  claim: string[]
  /** Run if any migration was run. */
  tune(tables: TableTraits): string[]
}

export const SQLITE: Dialect = {
  engine: 'sqlite',
  translate: (sql) => sql,
  findMigrations: `select 1 as found from sqlite_master where type = 'table' and name = 'migration'`,
  claim: [],
  tune: () => [],
}

/** The tables that migrations mark, in a line `-- hot: table` or `-- bytes: table`. */
export type TableTraits = {
  /** Its rows change with every request. */
  hot: string[]
  /** Its rows contain many bytes when they are deleted. */
  bytes: string[]
}

const FOLDER = new URL('./migrations/', import.meta.url)

/**
 * Brings the store to this program's version.
 * @throws StoreUnusable when the store was written by a newer program.
 */
export async function migrate(db: Db, dialect = SQLITE): Promise<void> {
  const migrations = await load(dialect.engine)
  await db.tx(async (tx) => {
    for (const statement of dialect.claim) await tx.run(statement)
    // Checked first: a user without the right to create tables can start on a migrated store.
    const [found] = await tx.run(dialect.findMigrations)
    if (!found) {
      await tx.run(
        dialect.translate(
          'create table migration (version integer primary key, name text not null)',
        ),
      )
    }
    const rows = await tx.run<{ version: number }>('select version from migration')
    const done = new Set(rows.map(({ version }) => version))
    const known = new Set(migrations.map(({ version }) => version))
    // Each is asked for, not the highest: a newer program may have run one that landed late, with a lower number.
    const unknown = rows.find(({ version }) => !known.has(version))
    if (unknown) {
      throw new StoreUnusable(
        `The database has migration ${unknown.version}, which this Mayfly does not know. Start the newer Mayfly that wrote it.`,
      )
    }
    let isChanged = false
    for (const { version, name, sql } of migrations) {
      // One that was written beside others may come after a later one.
      if (done.has(version)) continue
      isChanged = true
      for (const statement of split(sql)) await tx.run(dialect.translate(statement))
      await tx.run('insert into migration (version, name) values ($1, $2)', version, name)
    }
    if (isChanged)
      for (const statement of dialect.tune(traitsIn(migrations))) await tx.run(statement)
  })
}

/** A migration of the store that this program does not know: a newer one has written it. Null if there is none. */
export async function newerMigration(db: Pick<Db, 'engine' | 'read'>): Promise<number | null> {
  const known = new Set((await load(db.engine)).map(({ version }) => version))
  const rows = await db.read<{ version: number }>('select version from migration')
  return rows.find(({ version }) => !known.has(version))?.version ?? null
}

type Migration = { version: number; name: string; sql: string }

async function load(engine: Db['engine']): Promise<Migration[]> {
  const names = (await readdir(FOLDER))
    .filter((name) => {
      const [, only = engine] = /^\d{4}-[a-z-]+(?:\.([a-z]+))?\.sql$/.exec(name) ?? [null, null]
      return only === engine
    })
    .sort()
  return Promise.all(
    names.map(async (name) => ({
      version: Number(name.slice(0, 4)),
      name,
      sql: await readFile(new URL(name, FOLDER), 'utf8'),
    })),
  )
}

/** Statements end in a semicolon at the end of a line; `--` comments are for the reader. */
function split(sql: string): string[] {
  return sql
    .replaceAll(/--.*$/gm, '')
    .split(/;\s*$/m)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '')
}

function traitsIn(migrations: Migration[]): TableTraits {
  const traits: TableTraits = { hot: [], bytes: [] }
  for (const { sql } of migrations) {
    for (const [, trait, table = ''] of sql.matchAll(/^-- (hot|bytes): (\w+)$/gm)) {
      traits[trait === 'hot' ? 'hot' : 'bytes'].push(table)
    }
  }
  return traits
}
