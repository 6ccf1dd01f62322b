/**
 * What reads of whispers have brought, until it is opened and written. A read that is spent brings its
 * bytes once: a wrong password, a full disk or a kill must not be the end of them. They are encrypted,
 * and their key is not kept with them.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import type { Cli } from './cli.ts'
import { flushFolder, namesIn, privateFolder, withFile, writeFlushed } from './data-folder.ts'

/** Room that is older belongs to a command that was killed: no read takes as long. */
const LEFT_MS = 3_600_000

export type Kept = { envelope: Uint8Array<ArrayBuffer>; file: string }

export type Room = {
  /** Puts what the read has brought there, flushed. */
  keep(envelope: Uint8Array<ArrayBuffer>): Kept
  /** Gives the room back. */
  leave(): void
}

/** What an earlier read of this whisper has brought, or null. */
export function findKept({ folder }: Cli, publicId: string): Kept | null {
  const [name] = namesIn(folderOf(folder), '.whisper').filter((some) => isOf(some, publicId))
  if (name === undefined) return null
  const file = join(folderOf(folder), `${name}.whisper`)
  return { envelope: new Uint8Array(withFile(file, () => readFileSync(file))), file }
}

/** Takes the room for so many bytes, so that a full disk is found before the read is spent. */
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
    // Noise: some file systems keep no room for zeros.
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
