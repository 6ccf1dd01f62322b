/** A lock for one process at a time. It ends with its process, even if that is killed. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { isCode, withFile } from '../data-folder.ts'
import { CliError } from '../exit.ts'

export type Lock = { release(): void }

/**
 * Takes the lock, or returns who holds it. It is SQLite's lock on an empty database, which the system
 * releases when the process is killed, so that no stale lock remains. A file beside it has the id of
 * the process and since when it holds the lock, for the message that names the holder.
 */
export function takeLock(file: string): Lock | { heldBy: string; since: string | null } {
  makeEmpty(file)
  const database = open(file)
  const pidFile = `${file}.pid`
  const now = `${new Date().toISOString().slice(0, 19)}Z`
  try {
    database.exec('begin exclusive')
  } catch (error) {
    database.close()
    if (!(error instanceof Error)) throw error
    if (!/locked/.test(error.message))
      throw new CliError(`${file} cannot be locked: ${error.message}.`)
    const [heldBy = '', since = null] = holderIn(pidFile)
    return { heldBy: heldBy || 'unknown', since }
  }
  try {
    withFile(pidFile, () => writeFileSync(pidFile, `${process.pid}\n${now}\n`, { mode: 0o600 }))
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

/** The holder writes the file just after it got the lock. */
function holderIn(pidFile: string): string[] {
  try {
    return readFileSync(pidFile, 'utf8').trim().split('\n')
  } catch {
    return []
  }
}

function makeEmpty(file: string): void {
  try {
    writeFileSync(file, '', { mode: 0o600, flag: 'wx' })
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error
  }
}
