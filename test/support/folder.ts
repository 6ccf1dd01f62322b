/** A temporary folder for one test, swept away when it ends. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What a test context and a suite's clean-up have in common. */
export type After = { after(work: () => unknown): unknown }

export async function temporaryFolder(t: After): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-'))
  // A process that was killed a moment ago may still be writing its last file.
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }))
  return folder
}
