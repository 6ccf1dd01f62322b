/** A temporary folder for one test, swept away when it ends. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What a test context and a suite's clean-up have in common. */
export type After = { after(work: () => unknown): unknown }

export async function temporaryFolder(t: After): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}
