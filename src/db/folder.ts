/** The folder that a store is in. */
import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { messageOf } from '../lib/errors.ts'
import { StoreUnusable } from './db.ts'

/**
 * Makes the folder of a file, and the missing folders above it, accessible for their owner only.
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
 * Not with Node's `recursive`, which never returns if a file system such as /proc answers ENOENT to a name
 * that it does not accept.
 */
function make(folder: string): void {
  if (existsSync(folder)) return
  const above = dirname(folder)
  if (above !== folder) make(above)
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    // Of two starts at the same time, both may have found it missing.
    if (!existsSync(folder)) throw error
  }
}
