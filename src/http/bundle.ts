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
 * @returns the files by name: `whisper/whisper.js`, and its source map `whisper/whisper.js.map`.
 */
export async function readBundles(
  root: URL,
  scripts: readonly string[],
): Promise<Map<string, Uint8Array>> {
  if (import.meta.url.endsWith('.ts')) return bundle(root, scripts)
  const names = scripts.flatMap((script) => [`${script}.js`, `${script}.js.map`])
  return new Map(names.map((name) => [name, readFileSync(new URL(BUNDLES + name, root))]))
}

/** Bundles from source. What a page imports late is in its one module too. */
export async function bundle(
  root: URL,
  scripts: readonly string[],
): Promise<Map<string, Uint8Array>> {
  const { build } = await import('esbuild')
  const outdir = fileURLToPath(root)
  const { outputFiles } = await build({
    entryPoints: scripts.map((script) => ({
      in: fileURLToPath(new URL(`web/${script}.ts`, root)),
      out: script,
    })),
    ...{
      bundle: true,
      preserveSymlinks: true,
      minify: true,
      format: 'esm',
      target: 'es2022',
      charset: 'utf8',
    },
    // The map has the source, so that anyone can read what their browser runs.
    ...{ sourcemap: 'linked', sourceRoot: '/', legalComments: 'inline' },
    ...{ write: false, outdir, logLevel: 'silent' },
  })
  return new Map(
    outputFiles.map(({ path, contents }) => [
      relative(outdir, path).replaceAll(sep, '/'),
      contents,
    ]),
  )
}
