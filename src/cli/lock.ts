/** One process at a time: a lock that ends with its process, however that ends. */
import { rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isCode, privateFolder, readIfThere, withFile } from './data-folder.ts'
import { CliError } from './exit.ts'

export type Lock = { release(): void }

/**
 * Takes the lock, or says who has it. The lock is SQLite's, on an empty database: the system lets go
 * of it when the process is killed, so that none is ever left behind to be guessed about. The number
 * of the process stands beside it, for the sentence that names who has it.
 */
export function takeLock(file: string): Lock | { heldBy: string } {
  privateFolder(dirname(file))
  makeEmpty(file)
  const database = open(file)
  const pidFile = `${file}.pid`
  try {
    database.exec('begin exclusive')
  } catch (error) {
    database.close()
    if (!(error instanceof Error)) throw error
    if (!/locked/.test(error.message))
      throw new CliError(`${file} cannot be locked: ${error.message}.`)
    return { heldBy: readIfThere(pidFile)?.trim() ?? 'unknown' }
  }
  try {
    withFile(pidFile, () => writeFileSync(pidFile, `${process.pid}\n`, { mode: 0o600 }))
  } catch (error) {
    database.close()
    throw error
  }
  return {
    release() {
      rmSync(pidFile, { force: true })
      database.close()
    },
  }
}

function open(file: string): DatabaseSync {
  try {
    return new DatabaseSync(file, { timeout: 0 })
  } catch (error) {
    throw new CliError(
      `${file} cannot be locked: ${error instanceof Error ? error.message : error}.`,
    )
  }
}

function makeEmpty(file: string): void {
  try {
    writeFileSync(file, '', { mode: 0o600, flag: 'wx' })
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error
  }
}
