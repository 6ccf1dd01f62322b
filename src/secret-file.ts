/** The server's secret, when the operator gave none: made once and kept beside the SQLite file. */
import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { ConfigError } from './config.ts'

/** @throws ConfigError when the file is there and is not ours. */
export function secretBeside(databaseFile: string): Uint8Array {
  const file = `${databaseFile.replace(/\.db$/, '')}.secret`
  if (!existsSync(file)) make(file)
  const text = readFileSync(file, 'utf8').trim()
  if (!/^[0-9a-f]{64}$/.test(text)) {
    throw new ConfigError(`${file} must hold 32 bytes in hex. Restore it, or set MAYFLY_SECRET.`)
  }
  return new Uint8Array(Buffer.from(text, 'hex'))
}

/** Written whole and then linked, so that of two starts at once both read the same secret. */
function make(file: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const draft = `${file}.${process.pid}.draft`
  writeFileSync(draft, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flag: 'wx' })
  try {
    linkSync(draft, file)
  } catch (error) {
    if (!existsSync(file)) throw error
  } finally {
    rmSync(draft, { force: true })
  }
}
