import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Those of `candidates` that import one of `files`, or what imports it. */
export function importersOf(files: string[], candidates: string[]): string[] {
  const wanted = new Set(files)
  const reaches = new Map<string, boolean>()
  return candidates.filter(isReaching)

  function isReaching(file: string): boolean {
    if (wanted.has(file)) return true
    const known = reaches.get(file)
    if (known !== undefined) return known
    reaches.set(file, false)
    const isFound = existsSync(file) && importsOf(file).some(isReaching)
    reaches.set(file, isFound)
    return isFound
  }
}

function importsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8')
  const paths = [...text.matchAll(/(?:from|import|import\() ?'(\.[^']+\.ts)'/g)]
  return paths.map(([, path = '']) => join(dirname(file), path))
}
