/** The server's secret, when the operator gave none: made once and kept beside the SQLite file. */
import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type Config, ConfigError } from './config.ts'

/**
 * The secrets that are set, or else the one beside the SQLite file. A server has no file that all
 * who share it could read.
 */
export function secretsGiven({
  secrets,
  databaseUrl,
}: Pick<Config, 'secrets' | 'databaseUrl'>): () => [Uint8Array, ...Uint8Array[]] {
  if (secrets !== null) return () => secrets
  if (databaseUrl.kind === 'sqlite') return () => [secretBeside(databaseUrl.file)]
  throw new ConfigError(
    'MAYFLY_SECRET must be set with PostgreSQL: 32 bytes in hex, the same for every instance.',
  )
}

/** Where the secret of a database is kept. */
export const secretFile = (databaseFile: string): string =>
  `${databaseFile.replace(/\.db$/, '')}.secret`

/** @throws ConfigError when the file is not ours, or cannot be read or made. */
export function secretBeside(databaseFile: string): Uint8Array {
  const file = secretFile(databaseFile)
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
    const reason = error instanceof Error ? error.message : String(error)
    throw new ConfigError(`${file} cannot be read or made: ${reason}. Or set MAYFLY_SECRET.`)
  }
}

/**
 * Written whole and then linked, so that of two starts at once both read the same secret. The folder is
 * there: the store in it was opened before.
 */
function make(file: string): void {
  // A name of its own each time: in a container the process id is the same at every start.
  const draft = `${file}.${randomBytes(8).toString('hex')}.draft`
  // Flushed: seeds that are sealed under it outlive a power cut, so it must too.
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
