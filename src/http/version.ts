/** The version of this service. */
import { readFileSync } from 'node:fs'

const MANIFEST = new URL('../../package.json', import.meta.url)

export const { version: VERSION } = JSON.parse(readFileSync(MANIFEST, 'utf8')) as {
  version: string
}
