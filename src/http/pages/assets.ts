/** The files of the pages, ready for browsers: one module for each page, style sheets and images. */
import { readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { readBundles } from './bundle.ts'
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
