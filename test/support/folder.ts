/** A temporary folder for one test, which is removed at its end. */
import { statfsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The common part of a test context and of a suite's hooks. */
export type After = { after(work: () => unknown): unknown }

const MEMORY = '/dev/shm'
const ROOM_BYTES = 1024 ** 3

/**
 * The tests of each commit write to memory where there is room: nothing of it outlives them, and the flushes of a disk
 * would take most of their time. All others write to the disk.
 */
const base = process.env.TEST_IN_MEMORY === '1' && hasRoom(MEMORY) ? MEMORY : tmpdir()

export async function temporaryFolder(t: After): Promise<string> {
  const folder = await mkdtemp(join(base, 'mayfly-'))
  // A process that was just killed may still be writing its last file.
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }))
  return folder
}

/** A file of a folder of its own, with this in JSON: plans, rates. */
export async function jsonFile(t: After, value: unknown): Promise<string> {
  const file = join(await temporaryFolder(t), 'settings.json')
  await writeFile(file, JSON.stringify(value))
  return file
}

function hasRoom(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize >= ROOM_BYTES
  } catch {
    return false
  }
}
