/**
 * Node keeps what it made of our TypeScript, which is two thirds of a start from source. Without types to strip it
 * saves next to nothing, so an installed package has no cache. The cache is code that runs as us, so it lies in our
 * own folder, where nobody writes who could not change our files as well.
 * Plain JavaScript, so that no file has to be compiled before it is used.
 */
import { lstatSync, mkdirSync, statSync } from 'node:fs'
import * as nodeModule from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const PACKAGE = fileURLToPath(new URL('..', import.meta.url))

/**
 * Called before anything else is imported. Without a folder, such as on a read-only file system, everything
 * works as before, only slower. A cache that NODE_COMPILE_CACHE names is in use already, and stays.
 */
export function useCompileCache(root = PACKAGE) {
  const folder = cacheFolder(root)
  if (folder !== null) nodeModule.enableCompileCache?.(folder)
}

/**
 * The folder of the cache, or null if others could write there, or we cannot read. Only the owner of the package
 * creates it: in a folder of ours, the owner could neither write nor remove anything. Root, who could write
 * everywhere, leaves nothing in a package of somebody else.
 */
export function cacheFolder(root) {
  try {
    const owner = statSync(root)
    const us = process.geteuid?.()
    const isOwner = us === undefined || us === owner.uid
    if (us === 0 && !isOwner) return null
    const trusted = [owner.uid, us]
    for (const folder of [join(root, '.cache'), join(root, '.cache', 'compiled')]) {
      if (isOwner) makeFolder(folder)
      const { mode, uid, gid } = lstatSync(folder)
      const isFolder = (mode & 0o170000) === 0o040000
      // Windows has no such modes: there a folder in ours has the rights of ours.
      // A group may write to the cache if it may write to the package: with some umasks all files are so.
      const isOfGroup = gid === owner.gid && (owner.mode & 0o020) !== 0
      const forbidden = isOfGroup ? 0o002 : 0o022
      const isOurs =
        process.platform === 'win32' || (trusted.includes(uid) && (mode & forbidden) === 0)
      if (!isFolder || !isOurs) return null
    }
    return join(root, '.cache', 'compiled')
  } catch {
    return null
  }
}

function makeFolder(folder) {
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch {
    // It is there already, or it cannot be made: the next look at it tells.
  }
}
