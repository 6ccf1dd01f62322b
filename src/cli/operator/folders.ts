/** What this user may do with a folder or a file. */
import { accessSync, constants, existsSync } from 'node:fs'
import { dirname } from 'node:path'

/** The folder, or its nearest existing parent. */
export function nearest(folder: string): string {
  const above = dirname(folder)
  return existsSync(folder) || above === folder ? folder : nearest(above)
}

export const isWritable = (folder: string): boolean =>
  isAllowed(folder, constants.W_OK | constants.X_OK)

export function isAllowed(path: string, what: number): boolean {
  try {
    accessSync(path, what)
    return true
  } catch {
    return false
  }
}
