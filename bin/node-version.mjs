// Plain JavaScript, so that an old Node can read it and say what is wrong.
import { existsSync } from 'node:fs'

const [major] = process.versions.node.split('.').map(Number)

export const isTooOld = major < 24

/** What is wrong and what to run. `command` brings a newer Node, where npm has done its work. */
export function tooOld(command) {
  const brought = new URL('../node_modules/node/', import.meta.url)
  const isNotUnpacked = existsSync(brought) && !existsSync(new URL('bin/node', brought))
  const says = `Mayfly needs Node 24 or newer and this is ${process.version}.`
  return isNotUnpacked
    ? `${says} npm has not unpacked the Node that the install brings, because it ran without scripts. Run: npm rebuild node --ignore-scripts=false\n`
    : `${says} Run: ${command}\n`
}
