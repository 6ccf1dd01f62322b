/** Test vectors. Their shape is vouched for by the tests that compare them. */
import { readFileSync } from 'node:fs'

export function vectors<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`../vectors/${name}.json`, import.meta.url), 'utf8')) as T
}
