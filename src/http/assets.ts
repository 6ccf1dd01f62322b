/**
 * The files of the pages, ready for browsers: modules without their types, style sheets and images. Only
 * modules that a page imports are served, now or when they are needed.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { digest, encode, type Served } from './encoded.ts'

export type Assets = {
  /** A hash of all files. It is part of their addresses, which change with it. */
  version: string
  /** The file at a path below the version, such as `web/home.js`. */
  file(path: string): Promise<Served | null>
  /** A module and everything that it imports as it starts, itself first. */
  modulesOf(path: string): string[]
}

/** Packages that pages may import. Each is one file without imports. */
const VENDORED: Record<string, string> = { qr: import.meta.resolve('qr') }

const TYPES: Record<string, string> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** Imports begin at the start of a line: the formatter ensures that. */
const IMPORT =
  /^(import\s+(?:[\w$*{},\s]+?\sfrom\s*)?'|export\s+(?:\*(?:\s+as\s+[\w$]+)?|\{[^}]*\})\s*from\s*')([^']+)(')/gm

/** A dynamic import loads its module when it is needed, so the page does not announce it. */
const LATE_IMPORT = /(\bimport\(')(\.[^']+)('\))/g

/** @param root the folder of the rooms: `src/` when it runs from there, else `dist/`. */
export function readAssets(root: URL, entries: readonly string[]): Assets {
  const texts = new Map<string, Buffer>()
  const imports = new Map<string, string[]>()

  function addModule(path: string): void {
    if (texts.has(path)) return
    const found: string[] = []
    const late: string[] = []
    const pointTo =
      (targets: string[]) =>
      // biome-ignore lint/complexity/useMaxParams: String.replaceAll calls it.
      (_all: string, before: string, to: string, after: string): string => {
        const target = resolve(path, to)
        targets.push(target)
        const relative = posix.relative(posix.dirname(path), target)
        return `${before}${relative.startsWith('.') ? relative : `./${relative}`}${after}`
      }
    const text = readModule(root, path)
      .replaceAll(IMPORT, pointTo(found))
      .replaceAll(LATE_IMPORT, pointTo(late))
    texts.set(path, Buffer.from(text))
    imports.set(path, found)
    for (const target of [...found, ...late]) addModule(target)
  }

  for (const entry of entries) addModule(entry)
  for (const name of readdirSync(new URL('web/', root))) {
    if (/\.(?:css|svg)$/.test(name)) {
      texts.set(`web/${name}`, readFileSync(new URL(`web/${name}`, root)))
    }
  }

  const ready = new Map<string, Promise<Served>>()
  return {
    version: digest([...texts].flat()).slice(0, 12),
    async file(path) {
      const text = texts.get(path)
      if (!text) return null
      const served = ready.get(path) ?? encode(text, TYPES[posix.extname(path)] ?? '')
      ready.set(path, served)
      return served
    },
    modulesOf(path) {
      const modules = new Set([path])
      for (const some of modules) for (const next of imports.get(some) ?? []) modules.add(next)
      return [...modules]
    },
  }
}

function readModule(root: URL, path: string): string {
  const vendored = Object.keys(VENDORED).find((name) => path === `vendor/${name}.js`)
  if (vendored !== undefined) return readFileSync(fileURLToPath(VENDORED[vendored] ?? ''), 'utf8')
  // From `dist/` the compiler's output is read, from `src/` the source, whose types become spaces.
  if (!import.meta.url.endsWith('.ts')) return readFileSync(new URL(path, root), 'utf8')
  const source = readFileSync(new URL(path.replace(/\.js$/, '.ts'), root), 'utf8')
  return stripTypeScriptTypes(source)
}

function resolve(from: string, to: string): string {
  if (!to.startsWith('.')) return `vendor/${to}.js`
  return posix.join(posix.dirname(from), to).replace(/\.ts$/, '.js')
}
