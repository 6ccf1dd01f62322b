/** The real program, and the least that a process of its own needs. */
import { fileURLToPath } from 'node:url'

export const BIN = fileURLToPath(new URL('../../bin/mayfly.mjs', import.meta.url))

export const ENVIRONMENT = {
  PATH: process.env.PATH ?? '',
  // Node keeps there what it made of the sources, which is half the time of a start.
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../.cache/compiled/', import.meta.url)),
}
