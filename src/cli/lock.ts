/** One process at a time: a lock that ends with its process, however that ends. */
import { rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isCode, privateFolder, readIfThere } from './data-folder.ts'

export type Lock = { release(): void }

/**
 * Takes the lock, or says who has it. The lock is SQLite's, on an empty database: the system lets go
 * of it when the process is killed, so that none is ever left behind to be guessed about. The number
 * of the process stands beside it, for the sentence that names who has it.
 */
export function takeLock(file: string): Lock | { heldBy: string } {
  privateFolder(dirname(file))
  makeEmpty(file)
  const database = new DatabaseSync(file, { timeout: 0 })
  const pidFile = `${file}.pid`
  try {
    database.exec('begin exclusive')
  } catch (error) {
    database.close()
    if (!(error instanceof Error) || !/locked/.test(error.message)) throw error
    return { heldBy: readIfThere(pidFile)?.trim() ?? 'unknown' }
  }
  writeFileSync(pidFile, `${process.pid}\n`, { mode: 0o600 })
  return {
    release() {
      rmSync(pidFile, { force: true })
      database.close()
    },
  }
}

function makeEmpty(file: string): void {
  try {
    writeFileSync(file, '', { mode: 0o600, flag: 'wx' })
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error
  }
}
