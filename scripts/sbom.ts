/**
 * The bill of materials of a tarball, CycloneDX, as npm makes it of the lockfile. What the tarball pins is required;
 * what `mayfly serve` needs besides is optional, in the versions with which the tests ran. It names the tarball by
 * its hash, and has no time and no random number, so that the same tarball has the same bill.
 */
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'

export type Component = {
  'bom-ref': string
  name: string
  version: string
  scope?: 'required' | 'optional'
  hashes?: { alg: string; content: string }[]
  licenses?: unknown[]
  properties?: unknown[]
}

export type Sbom = {
  serialNumber?: string
  metadata: { timestamp?: string; component: Component }
  components: Component[]
  dependencies: { ref: string; dependsOn: string[] }[]
}

/**
 * Writes the bill beside the tarball, and returns its path.
 * @param pinned the packages in the tarball's own lockfile, by path.
 */
export function writeSbom(
  tarball: string,
  { sbom, pinned }: { sbom: Sbom; pinned: Record<string, { version: string }> },
): string {
  const { serialNumber: _random, metadata, components, ...rest } = sbom
  const { timestamp: _now, ...said } = metadata
  const { properties: _ofSource, ...component } = said.component
  const required = new Set(
    Object.entries(pinned).map(
      ([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`,
    ),
  )
  const content = createHash('sha512').update(readFileSync(tarball)).digest('hex')
  const made = {
    ...rest,
    metadata: {
      ...said,
      // npm takes the name of the folder.
      component: {
        ...component,
        name: nameIn(component['bom-ref']),
        hashes: [{ alg: 'SHA-512', content }],
      },
    },
    components: components.map((each) => ({
      ...each,
      scope: required.has(each['bom-ref']) ? 'required' : 'optional',
    })),
  }
  const file = tarball.replace(/\.tgz$/, '.cdx.json')
  writeFileSync(file, `${JSON.stringify(made, null, 2)}\n`)
  return file
}

const nameIn = (ref: string): string => ref.slice(0, ref.lastIndexOf('@'))
