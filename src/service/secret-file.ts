/** The server's secret, if the operator did not set one: it is made once, in a file beside the SQLite file. */
import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { Db } from '../db/db.ts'
import { messageOf } from '../lib/errors.ts'
import { type Config, ConfigError } from './config.ts'

export type Secrets = [Uint8Array, ...Uint8Array[]]

/**
 * The secrets of the configuration. By default, the secret beside the SQLite file: whether it may be made
 * depends on the store. With PostgreSQL there is no file that all instances could read.
 */
export function secretsGiven({
  secrets,
  databaseUrl,
}: Pick<Config, 'secrets' | 'databaseUrl'>): (db: Pick<Db, 'read'>) => Promise<Secrets> {
  if (secrets !== null) return async () => secrets
  if (databaseUrl.kind === 'sqlite') {
    return async (db) => {
      const isStoreUsed = (await db.read(USED)).length > 0
      return [secretBeside(databaseUrl.file, { isStoreUsed })]
    }
  }
  throw new ConfigError(
    'MAYFLY_SECRET must be set with PostgreSQL: 32 bytes in hex, the same for every instance.',
  )
}

/** The file with the secret of a database. */
export const secretFile = (databaseFile: string): string =>
  `${databaseFile.replace(/\.db$/, '')}.secret`

/** The source of the secret, for messages about it. */
export const secretSource = ({
  secrets,
  databaseUrl,
}: Pick<Config, 'secrets' | 'databaseUrl'>): string =>
  secrets === null && databaseUrl.kind === 'sqlite' ? secretFile(databaseUrl.file) : 'MAYFLY_SECRET'

/** The message for a used store whose secret is missing. */
const lostSecret = (databaseFile: string): string =>
  `${secretFile(databaseFile)} is missing, and ${databaseFile} has orders that were made under it. ` +
  'Restore it from your copy, or set MAYFLY_SECRET to its content. ' +
  'A new secret would open none of these orders: buyers who have paid and not collected would get nothing.'

/** Whether anything in the store was made under a secret. */
export const USED =
  'select 1 as used where exists (select 1 from purchase_order) or exists (select 1 from gate_intent)'

/**
 * @param isStoreUsed if true, no secret is made, because a new one would open none of the store's orders.
 * @throws ConfigError if the file is malformed or missing, or cannot be read or made.
 */
export function secretBeside(
  databaseFile: string,
  { isStoreUsed }: { isStoreUsed: boolean },
): Uint8Array {
  const file = secretFile(databaseFile)
  if (isStoreUsed && !existsSync(file)) throw new ConfigError(lostSecret(databaseFile))
  const text = readOrMake(file).trim()
  if (!/^[0-9a-f]{64}$/.test(text)) {
    throw new ConfigError(`${file} must hold 32 bytes in hex. Restore it, or set MAYFLY_SECRET.`)
  }
  return new Uint8Array(Buffer.from(text, 'hex'))
}

function readOrMake(file: string): string {
  try {
    if (!existsSync(file)) make(file)
    return readFileSync(file, 'utf8')
  } catch (error) {
    const reason = messageOf(error)
    throw new ConfigError(
      `${file} cannot be read or created: ${reason}. Fix that, or set MAYFLY_SECRET.`,
    )
  }
}

/**
 * Writes a draft and links it, so that two starts at the same time read the same secret. The folder exists,
 * because the store in it was opened before.
 */
function make(file: string): void {
  // A random name: in a container, the process id is the same at every start.
  const draft = `${file}.${randomBytes(8).toString('hex')}.draft`
  // Flushed: the seeds sealed under it survive a loss of power, so it must survive as well.
  writeFileSync(draft, `${randomBytes(32).toString('hex')}\n`, {
    mode: 0o600,
    flag: 'wx',
    flush: true,
  })
  try {
    linkSync(draft, file)
  } catch (error) {
    if (!existsSync(file)) throw error
  } finally {
    rmSync(draft, { force: true })
  }
}
