/** The user's data folder: files of mode 600 in folders of mode 700, written atomically. */
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir, platform } from 'node:os'
import { dirname, join } from 'node:path'

/** The folder for a user's data: XDG's, or its equivalent on other systems. */
export function dataFolder(environment: Record<string, string | undefined> = process.env): string {
  const { XDG_DATA_HOME, LOCALAPPDATA } = environment
  // The XDG specification demands that relative paths are ignored.
  if (XDG_DATA_HOME?.startsWith('/')) return join(XDG_DATA_HOME, 'mayfly')
  const home = environment.HOME ?? homedir()
  if (platform() === 'darwin') return join(home, 'Library', 'Application Support', 'mayfly')
  if (platform() === 'win32') return join(LOCALAPPDATA ?? join(home, 'AppData', 'Local'), 'mayfly')
  return join(home, '.local', 'share', 'mayfly')
}

/** Writes a new file, flushed before it gets its name. False if the name is taken. */
export function writeNew(file: string, text: string): boolean {
  const draft = writeDraft(file, text)
  try {
    // A link, not a rename, because it fails if the file exists.
    linkSync(draft, file)
  } catch (error) {
    if (isCode(error, 'EEXIST')) return false
    throw error
  } finally {
    rmSync(draft, { force: true })
  }
  flushFolder(dirname(file))
  return true
}

/** Writes or replaces a file, flushed before it gets its name. */
export function overwrite(file: string, text: string): void {
  renameSync(writeDraft(file, text), file)
  flushFolder(dirname(file))
}

/** The text of a file, or null if it does not exist. */
export function readIfThere(file: string): string | null {
  try {
    return withFile(file, () => readFileSync(file, 'utf8'))
  } catch (error) {
    if (isCode(error, 'ENOENT')) return null
    throw error
  }
}

/** The names of the files with this ending, without it. An empty list if the folder does not exist. */
export function namesIn(folder: string, end: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith(end))
      .map((name) => name.slice(0, -end.length))
      .sort()
  } catch (error) {
    if (isCode(error, 'ENOENT')) return []
    throw error
  }
}

/** The folder, created if needed. Only the user can read it. */
export function privateFolder(folder: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return folder
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

/** Whether a system call failed with this code. */
export function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}

function writeDraft(file: string, text: string): string {
  privateFolder(dirname(file))
  const draft = `${file}.${randomBytes(8).toString('hex')}.draft`
  try {
    withFile(file, () => writeFlushed(draft, 'wx', text))
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
  return draft
}

/** Writes a file that only the user can read, and returns when it is on disk. */
export function writeFlushed(
  file: string,
  flag: 'wx' | 'w' | 'r+',
  data: string | Uint8Array,
): void {
  const descriptor = openSync(file, flag, 0o600)
  try {
    withFile(file, () => {
      writeFileSync(descriptor, data)
      fsyncSync(descriptor)
    })
  } finally {
    closeSync(descriptor)
  }
}

/** Flushes a folder, so that a file's name survives a power cut. Windows neither can nor needs to. */
export function flushFolder(folder: string): void {
  if (platform() === 'win32') return
  const descriptor = openSync(folder, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
