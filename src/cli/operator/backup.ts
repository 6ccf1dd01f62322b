/** `mayfly backup FILE` and `mayfly restore FILE`: the embedded store, copied and put back. */
import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { type Config, readConfig } from '../../service/config.ts'
import { secretFile } from '../../service/secret-file.ts'
import { CliError, misuse } from '../exit.ts'
import { operator } from './command.ts'

const addBackup = operator({
  command: 'backup',
  says: 'copy the SQLite store; the service can be running',
  takes: { '<file>': 'the copy; an existing file is never overwritten' },
  examples: ['mayfly backup /backups/mayfly-2026-01-02.db'],
  async run({ file: copy }) {
    const config = readConfig()
    const file = sqliteFile(config)
    mustExist(file, 'store at')
    mustExist(dirname(resolve(copy)), 'folder')
    const { backupSqlite } = await import('../../db/sqlite/backup.ts')
    const { orders } = await backupSqlite(file, copy)
    const secret = config.secrets === null ? secretFile(file) : 'MAYFLY_SECRET'
    return {
      json: { file: copy, orders, secret },
      text:
        `${copy} has the store with ${orders} orders. The copy was read back and is complete.\n` +
        `The secret is not in it. Keep ${secret} too, in another place.\n`,
    }
  },
})

const addRestore = operator({
  command: 'restore',
  says: 'restore the store from a copy, after the service was stopped and its files were moved away',
  takes: { '<file>': 'the copy' },
  examples: ['mayfly restore /backups/mayfly-2026-01-02.db'],
  async run({ file: copy }) {
    const config = readConfig()
    const file = sqliteFile(config)
    mustExist(copy, 'file')
    const { restoreSqlite } = await import('../../db/sqlite/backup.ts')
    const { contestRestored } = await import('../../payment/operator.ts')
    const { orders } = await restoreSqlite(copy, file, [contestRestored])
    const isMissing = config.secrets === null && !existsSync(secretFile(file))
    const missing = `Put its secret back before the start: it belongs in ${secretFile(file)}.\n`
    return {
      json: { file, orders, missingSecret: isMissing ? secretFile(file) : null },
      text: `${file} has the store with ${orders} orders again.\n${isMissing ? missing : ''}`,
    }
  },
})

export const backupAndRestore = [addBackup, addRestore]

/** @throws CliError for a path that was given wrong. */
function mustExist(path: string, what: string): void {
  if (!existsSync(path)) throw misuse(`There is no ${what} ${path}.`)
}

function sqliteFile({ databaseUrl }: Config): string {
  if (databaseUrl.kind === 'sqlite') return databaseUrl.file
  throw new CliError(
    'MAYFLY_DATABASE_URL names a PostgreSQL server. Use its own tools for backups: docs/run/backup.md.',
  )
}
