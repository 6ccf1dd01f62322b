/** Reads test vectors. The tests that compare them check their shape. */
import { readFileSync } from 'node:fs'

export function vectors<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`../vectors/${name}.json`, import.meta.url), 'utf8')) as T
}
