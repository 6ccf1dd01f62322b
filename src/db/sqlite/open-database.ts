/** Opens the file of a store, and sets the connection up for its role. */
import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'
import { basename } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, type WorkerOptions } from './message.ts'

/** Checking a larger file would delay the start. Its damaged pages are found when they are read. */
const CHECK_FILES_UP_TO_BYTES = 64 * 1024 * 1024
/** Other processes, such as operator commands, may hold the write lock for a moment. */
export const BUSY_TIMEOUT_MS = 5_000
/** sqlite.org/rescode.html */
const SQLITE_BUSY = 5
const CACHE_KIBIBYTES = { writer: 12_000, reader: 12_000, scanner: 2_000 }
/** 16 MiB of log between two checkpoints, so that pages that change often are copied less often. */
const CHECKPOINT_PAGES = 4_000

/** @throws Error with SQLite's `code`, or with `CORRUPT` for a damaged file. */
export function openDatabase({ file, role }: Pick<WorkerOptions, 'file' | 'role'>): DatabaseSync {
  const opened = new DatabaseSync(file)
  try {
    configure(opened, role)
    return opened
  } catch (error) {
    opened.close()
    throw error
  }
}

function configure(opened: DatabaseSync, role: WorkerOptions['role']): void {
  opened.exec(
    `pragma busy_timeout = ${BUSY_TIMEOUT_MS}; pragma cache_size = -${CACHE_KIBIBYTES[role]}`,
  )
  // What a query sorts would else go to a file of SQLite's own when it is long, and deleted bytes with it.
  opened.exec('pragma temp_store = memory')
  if (role === 'scanner') giveWay()
  if (role !== 'writer') {
    opened.exec('pragma query_only = on')
    return
  }
  switchToWal(opened)
  opened.exec('pragma synchronous = full; pragma secure_delete = on')
  opened.exec(`pragma wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
  const bytes = Number(
    opened
      .prepare('select page_count * page_size as bytes from pragma_page_count, pragma_page_size')
      .get()?.bytes ?? 0,
  )
  if (bytes <= CHECK_FILES_UP_TO_BYTES) {
    const verdict = opened.prepare('pragma quick_check(1)').get()?.quick_check
    if (verdict !== 'ok') throw Object.assign(new Error(String(verdict)), { code: 'CORRUPT' })
  }
  // A file that cannot be written must stop the start. A writable one is not changed.
  opened.exec('begin immediate; pragma user_version = 0; rollback')
}

/** SQLite does not wait for another start that switches the same new file at the same moment. */
function switchToWal(opened: DatabaseSync): void {
  const deadline = Date.now() + BUSY_TIMEOUT_MS
  for (;;) {
    try {
      opened.exec('pragma journal_mode = wal')
      return
    } catch (error) {
      const { code } = describe(error)
      if ((Number(code) & 0xff) !== SQLITE_BUSY || Date.now() >= deadline) throw error
    }
  }
}

/** Beside a thread that does not give way, a scanner gets about a tenth of a processor. */
const GIVING_WAY = 10

/**
 * The thread that calls this gives way from now on, for good: without privileges no thread can undo it. It needs
 * Linux, where each thread has a priority of its own. Elsewhere nothing happens.
 */
function giveWay(): void {
  try {
    // `PROCESS/task/THREAD`
    setPriority(Number(basename(readlinkSync('/proc/thread-self'))), GIVING_WAY)
  } catch {
    // The threads share the processors evenly, which only makes the others a little slower.
  }
}
