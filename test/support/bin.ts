/** The path of the real program, and the least environment that its process needs. */
import { fileURLToPath } from 'node:url'

export const BIN = fileURLToPath(new URL('../../bin/mayfly.mjs', import.meta.url))

export const ENVIRONMENT = {
  PATH: process.env.PATH ?? '',
  // Node caches compiled code there, which saves half of a start's time.
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../.cache/compiled/', import.meta.url)),
}

/** What an older Node tells of itself, for NODE_OPTIONS. */
export const OLDER = `--import=data:text/javascript,${encodeURIComponent(
  `Object.defineProperty(process.versions, 'node', { value: '20.11.1' })`,
)}`
