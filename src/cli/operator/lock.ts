/** A lock for one process at a time. It ends with its process, even if that is killed. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

/**
 * Takes the lock, or returns who holds it. It is SQLite's lock on an empty database, which the system
 * releases when the process is killed, so that no stale lock remains. A file beside it has the id of
 * the process and since when it holds the lock, for the message that names the holder.
 * @throws where no lock can be made.
 */
export function takeLock(
  file: string,
): { release(): void } | { heldBy: string; since: string | null } {
  // Whoever else could open it could lock it.
  writeFileSync(file, '', { flag: 'a', mode: 0o600 })
  const database = new DatabaseSync(file, { timeout: 0 })
  const pidFile = `${file}.pid`
  const holder = `${process.pid}\n${new Date().toISOString().slice(0, 19)}Z\n`
  try {
    database.exec('begin exclusive')
    writeFileSync(pidFile, holder, { mode: 0o600 })
  } catch (error) {
    database.close()
    if (!(error instanceof Error && error.message === 'database is locked')) throw error
    const [heldBy = '', since = null] = holderIn(pidFile)
    return { heldBy: heldBy || 'unknown', since }
  }
  return {
    release() {
      rmSync(pidFile, { force: true })
      database.close()
    },
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
