/** Which version of the program a drill runs. */
import { execFile } from 'node:child_process'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { BIN as OWN } from '../support/bin.ts'
import { type After, temporaryFolder } from '../support/folder.ts'

const git = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** This version's, or the one that `DRILL_BIN` names. */
export const BIN = process.env.DRILL_BIN ?? OWN

/** The program of an earlier commit, in a work tree of its own. It runs with the packages of this one. */
export async function programOf(t: After, commit: string): Promise<string> {
  const folder = join(await temporaryFolder(t), 'previous')
  try {
    await git('git', ['worktree', 'add', '--quiet', '--detach', folder, commit], { cwd: ROOT })
  } catch (error) {
    throw new Error(
      `The commit ${commit} is missing. The drill needs the whole history: git fetch --unshallow.`,
      { cause: error },
    )
  }
  t.after(() => git('git', ['worktree', 'remove', '--force', folder], { cwd: ROOT }))
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return join(folder, 'bin', 'mayfly.mjs')
}
