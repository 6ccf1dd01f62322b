/** Where the user's data is, and files that only the user can read. */
import { closeSync, fsyncSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, platform } from 'node:os'
import { join } from 'node:path'

/** The folder for a user's data: XDG's, or its equivalent on macOS. */
export function dataFolder(environment: Record<string, string | undefined> = process.env): string {
  const { XDG_DATA_HOME } = environment
  // The XDG specification demands that relative paths are ignored.
  if (XDG_DATA_HOME?.startsWith('/')) return join(XDG_DATA_HOME, 'mayfly')
  const home = environment.HOME ?? homedir()
  if (platform() === 'darwin') return join(home, 'Library', 'Application Support', 'mayfly')
  return join(home, '.local', 'share', 'mayfly')
}

/** Works with a file. Errors name the file, which not every system call's error does. */
export function withFile<T>(file: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof Error && 'syscall' in error && !('path' in error)) {
      Object.assign(error, { path: file })
    }
    throw error
  }
}

/** Writes a file that only the user can read, and returns when it is on disk. A new one is whole or not there. */
export function writeFlushed(file: string, flag: 'wx' | 'w', data: string | Uint8Array): void {
  const descriptor = openSync(file, flag, 0o600)
  try {
    withFile(file, () => {
      writeFileSync(descriptor, data)
      fsyncSync(descriptor)
    })
  } catch (error) {
    if (flag === 'wx') rmSync(file, { force: true })
    throw error
  } finally {
    closeSync(descriptor)
  }
}
