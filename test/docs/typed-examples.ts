/** Compiles examples like their reader's compiler: as a module that imports `mayfly/client`. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type After, temporaryFolder } from '../support/folder.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Fails with the compiler's messages if the module violates the project's own rules. */
export async function assertTyped(t: After, module: string): Promise<void> {
  const folder = await temporaryFolder(t)
  await writeFile(join(folder, 'examples.mts'), module)
  const config = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: {
      paths: { 'mayfly/client': [join(root, 'src/client/index.ts')] },
      rootDir: '/',
      // An example may define a name that only its reader uses.
      noUnusedLocals: false,
      typeRoots: [join(root, 'node_modules/@types')],
    },
    include: [join(folder, 'examples.mts')],
  }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config))
  await promisify(execFile)(join(root, 'node_modules/.bin/tsc'), ['-p', folder]).catch((error) =>
    assert.fail(error.stdout),
  )
}
