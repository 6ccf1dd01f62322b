/** A temporary folder for one test, which is removed at its end. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The common part of a test context and of a suite's hooks. */
export type After = { after(work: () => unknown): unknown }

export async function temporaryFolder(t: After): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-'))
  // A process that was just killed may still be writing its last file.
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }))
  return folder
}
