/** `mayfly backup <file>` and `mayfly restore <file>`: the embedded store, copied and put back. */
import { existsSync } from 'node:fs'
import { type Config, ConfigError } from '../../config.ts'
import { backupSqlite, restoreSqlite } from '../../db/sqlite/backup.ts'
import { secretFile } from '../../secret-file.ts'
import { operate } from './command.ts'

export function backupCommand(args: string[]): Promise<number> {
  return withFile('backup', args, async (config, copy) => {
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
  return withFile('restore', args, async (config, copy) => {
    const file = sqliteFile(config)
    const { orders } = await restoreSqlite(copy, file)
    const isMissing = config.secrets === null && !existsSync(secretFile(file))
    return (
      `${file} has the store with ${orders} orders again.\n` +
      (isMissing ? `Put its secret back before the start, as ${secretFile(file)}.\n` : '')
    )
  })
}

async function withFile(
  verb: string,
  args: string[],
  act: (config: Config, file: string) => Promise<string>,
): Promise<number> {
  const [file] = args
  if (file === undefined || file.startsWith('-') || args.length > 1) {
    process.stderr.write(`Usage: mayfly ${verb} <file>\n`)
    return 2
  }
  return operate(async (config) => ({ isDone: true, text: await act(config, file) }))
}

function sqliteFile({ databaseUrl }: Config): string {
  if (databaseUrl.kind === 'sqlite') return databaseUrl.file
  throw new ConfigError(
    'MAYFLY_DATABASE_URL is a PostgreSQL server, which has tools of its own for this: docs/backup.md.',
  )
}
