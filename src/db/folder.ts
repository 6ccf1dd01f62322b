/** The folder that a store is in. */
import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { messageOf } from '../lib/errors.ts'
import { StoreUnusable } from './db.ts'

/**
 * Makes the folder of a file, and what is missing above it, for their owner alone.
 * @throws StoreUnusable with a sentence for the operator.
 */
export function makeFolderOf(file: string): void {
  try {
    make(dirname(file))
  } catch (error) {
    const reason = messageOf(error)
    throw new StoreUnusable(`The folder of ${file} cannot be made: ${reason}.`)
  }
}

/**
 * Node's own `recursive` never comes back where a file system says ENOENT of a name that it does not
 * take, as /proc does.
 */
function make(folder: string): void {
  if (existsSync(folder)) return
  const above = dirname(folder)
  if (above !== folder) make(above)
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    // Two starts at once may both have found it missing.
    if (!existsSync(folder)) throw error
  }
}
