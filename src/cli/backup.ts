/** `mayfly backup <file>` and `mayfly restore <file>`: the embedded store, copied and put back. */
import { existsSync } from 'node:fs'
import { type Config, ConfigError, readConfig } from '../config.ts'
import { StoreUnusable } from '../db/db.ts'
import { backupSqlite, restoreSqlite } from '../db/sqlite-backup.ts'
import { secretFile } from '../secret-file.ts'

export function backupCommand(args: string[]): Promise<number> {
  return onStore('backup', args, async (config, copy) => {
    const file = sqliteFile(config)
    const { orders } = await backupSqlite(file, copy)
    const secret = config.secrets === null ? secretFile(file) : 'MAYFLY_SECRET'
    return (
      `${copy} has the store with ${orders} orders, and was read back whole.\n` +
      `The secret is not in it: keep ${secret} too, somewhere else.\n`
    )
  })
}

export function restoreCommand(args: string[]): Promise<number> {
  return onStore('restore', args, async (config, copy) => {
    const file = sqliteFile(config)
    const { orders } = await restoreSqlite(copy, file)
    const isMissing = config.secrets === null && !existsSync(secretFile(file))
    return (
      `${file} has the store with ${orders} orders again.\n` +
      (isMissing ? `Put its secret back before the start, as ${secretFile(file)}.\n` : '')
    )
  })
}

async function onStore(
  verb: string,
  args: string[],
  act: (config: Config, file: string) => Promise<string>,
): Promise<number> {
  const [file] = args
  if (file === undefined || file.startsWith('-') || args.length > 1) {
    process.stderr.write(`Usage: mayfly ${verb} <file>\n`)
    return 2
  }
  try {
    process.stdout.write(await act(readConfig(), file))
    return 0
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof StoreUnusable)) throw error
    process.stderr.write(`${error.message}\n`)
    return 1
  }
}

function sqliteFile({ databaseUrl }: Config): string {
  if (databaseUrl.kind === 'sqlite') return databaseUrl.file
  throw new ConfigError(
    'MAYFLY_DATABASE_URL is a PostgreSQL server, which has tools of its own for this: docs/backup.md.',
  )
}
