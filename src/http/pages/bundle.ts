/**
 * The scripts of the pages, each bundled into one module. A clone bundles them at the first visit of a page. A built
 * package has them in `web/bundles/`, and needs no bundler.
 */
import { readFileSync } from 'node:fs'
import { relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Where the bundles are in a built package, below its root. */
export const BUNDLES = 'web/bundles/'

/**
 * @param root the folder of the rooms: `src/` when this runs from there, else `dist/`.
 * @param scripts such as `whisper/whisper`.
 * @returns the text of each bundle, by its script.
 */
export async function readBundles(
  root: URL,
  scripts: readonly string[],
): Promise<Map<string, Uint8Array>> {
  if (import.meta.url.endsWith('.ts')) return bundle(root, scripts)
  return new Map(
    scripts.map((script) => [script, readFileSync(new URL(`${BUNDLES}${script}.js`, root))]),
  )
}

/**
 * Bundles from source. What a page imports late is in its one module too. It stays readable, with the name of each
 * file above its part, so that anyone can read what their browser runs.
 */
export async function bundle(
  root: URL,
  scripts: readonly string[],
): Promise<Map<string, Uint8Array>> {
  const { build } = await import('esbuild')
  const folder = fileURLToPath(root)
  const { outputFiles } = await build({
    entryPoints: scripts.map((script) => ({ in: `${folder}web/${script}.ts`, out: script })),
    ...{ bundle: true, format: 'esm', target: 'es2022', charset: 'utf8', legalComments: 'inline' },
    ...{ absWorkingDir: folder, outdir: folder, preserveSymlinks: true },
    ...{ write: false, logLevel: 'silent' },
  })
  const texts = outputFiles.map(({ path, contents }) => [relative(folder, path), contents] as const)
  return new Map(texts.map(([path, text]) => [path.slice(0, -3).replaceAll(sep, '/'), text]))
}
