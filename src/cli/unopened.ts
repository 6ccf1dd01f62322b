/**
 * The fetched bytes of whispers, until they are decrypted and written. A spent read returns its bytes
 * once, so a wrong password, a full disk or a kill must not lose them. They stay encrypted, and the
 * key is not stored with them.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import type { Cli } from './cli.ts'
import { flushFolder, namesIn, privateFolder, withFile, writeFlushed } from './data-folder.ts'

/** Older reserved space belongs to a killed command, since no read takes this long. */
const LEFT_MS = 3_600_000

export type Kept = { envelope: Uint8Array<ArrayBuffer>; file: string }

export type Room = {
  /** Writes the bytes of the read there, flushed. */
  keep(envelope: Uint8Array<ArrayBuffer>): Kept
  /** Frees the reserved space. */
  leave(): void
}

/** The bytes of an earlier read of this whisper, or null. */
export function findKept({ folder }: Cli, publicId: string): Kept | null {
  const [name] = namesIn(folderOf(folder), '.whisper').filter((some) => isOf(some, publicId))
  if (name === undefined) return null
  const file = join(folderOf(folder), `${name}.whisper`)
  return { envelope: new Uint8Array(withFile(file, () => readFileSync(file))), file }
}

/** Reserves disk space for this many bytes, so that a full disk is noticed before the read is spent. */
export function makeRoom({ folder, now }: Cli, publicId: string, bytes: number): Room {
  const own = privateFolder(folderOf(folder))
  for (const name of namesIn(own, '.room')) {
    const left = join(own, `${name}.room`)
    const since = statSync(left, { throwIfNoEntry: false })?.mtimeMs
    if (since !== undefined && since < now() - LEFT_MS) rmSync(left, { force: true })
  }
  const name = join(own, `${publicId}.${randomBytes(8).toString('hex')}`)
  const room = `${name}.room`
  const leave = (): void => rmSync(room, { force: true })
  try {
    // Random bytes, since some file systems do not allocate zeros.
    writeFlushed(room, 'wx', randomBytes(bytes))
  } catch (error) {
    leave()
    throw error
  }
  return {
    keep(envelope) {
      writeFlushed(room, 'r+', envelope)
      truncateSync(room, envelope.length)
      const file = `${name}.whisper`
      renameSync(room, file)
      flushFolder(own)
      return { envelope, file }
    },
    leave,
  }
}

const folderOf = (folder: string): string => join(folder, 'unopened')

const isOf = (name: string, publicId: string): boolean => name.startsWith(`${publicId}.`)
