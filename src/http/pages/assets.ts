/** The files of the pages, ready for browsers: one module for each page, style sheets and images. */
import { readdirSync, readFileSync } from 'node:fs'
import { posix, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { digest, encode, type Served } from './encoded.ts'

export type Assets = Awaited<ReturnType<typeof readAssets>>

const TYPES: Record<string, string> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/**
 * @param root the folder of the rooms: `src/` when it runs from there, else `dist/`.
 * @param pages their scripts, each with its own style sheet.
 */
export async function readAssets(root: URL, pages: readonly { script: string | null }[]) {
  const scripts = pages.flatMap(({ script }) => script ?? [])
  const files = new Map<string, Buffer>()
  for (const [path, text] of await readBundles(root, scripts)) files.set(path, Buffer.from(text))
  for (const name of readdirSync(new URL('web/', root))) {
    if (name.endsWith('.svg')) files.set(name, readFileSync(new URL(`web/${name}`, root)))
  }
  const ready = new Map<string, Promise<Served>>()
  return {
    /** A hash of all files. It is part of their addresses, which change with it. */
    version: digest([...files].flat()).slice(0, 12),
    /** The file at a path below the version, such as `home.js` or `home.css`. */
    async file(path: string): Promise<Served | null> {
      const text = files.get(path)
      if (!text) return null
      const served = ready.get(path) ?? encode(text, TYPES[posix.extname(path)] ?? '')
      ready.set(path, served)
      return served
    },
  }
}

// The scripts of the pages, each bundled into one module. A clone bundles them at the first visit of a page. A built
// package has them in `web/bundles/`, and needs no bundler.

/** Where the bundles are in a built package, below its root. */
export const BUNDLES = 'web/bundles/'

/**
 * @param root the folder of the rooms: `src/` when this runs from there, else `dist/`.
 * @param scripts such as `whisper/write`.
 * @returns the module and the style sheet of each, by paths such as `whisper/write.js`.
 */
async function readBundles(
  root: URL,
  scripts: readonly string[],
): Promise<Map<string, Uint8Array>> {
  if (import.meta.url.endsWith('.ts')) return bundle(root, scripts)
  const paths = scripts.flatMap((script) => [`${script}.js`, `${script}.css`])
  return new Map(paths.map((path) => [path, readFileSync(new URL(`${BUNDLES}${path}`, root))]))
}

/** The scripts that see a secret: they stay readable, with the name of each file above its part. */
const READABLE = /^whisper\//

/** Bundles from source, each script into one module and one style sheet. */
export async function bundle(
  root: URL,
  scripts: readonly string[],
): Promise<Map<string, Uint8Array>> {
  const { build } = await import('esbuild')
  const folder = fileURLToPath(root)
  async function built(some: readonly string[], minify: boolean) {
    const { outputFiles } = await build({
      entryPoints: some.map((script) => ({ in: `${folder}web/${script}.tsx`, out: script })),
      bundle: true,
      minify,
      format: 'esm',
      target: 'es2022',
      charset: 'utf8',
      jsx: 'automatic',
      jsxImportSource: 'preact',
      legalComments: 'inline',
      absWorkingDir: folder,
      outdir: folder,
      preserveSymlinks: true,
      write: false,
      logLevel: 'silent',
    })
    return outputFiles.map(
      ({ path, contents }) => [relative(folder, path).replaceAll(sep, '/'), contents] as const,
    )
  }
  const isReadable = (script: string): boolean => READABLE.test(script)
  const [readable, others] = await Promise.all([
    built(scripts.filter(isReadable), false),
    built(
      scripts.filter((script) => !isReadable(script)),
      true,
    ),
  ])
  return new Map([...readable, ...others])
}
