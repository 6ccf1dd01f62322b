/** Names schemas in the document: each is written once, and referred to by `$ref`. */
import type { TSchema } from 'typebox'

type Node = unknown

/** @returns the document with `components.schemas`, and with a reference at each place of a named schema. */
export function nameSchemas<Document extends object>(
  document: Document,
  named: Record<string, TSchema>,
): Document {
  const names = new Map(
    Object.entries(named).map(([name, schema]) => [JSON.stringify(canonical(schema)), name]),
  )
  const schemas: Record<string, Node> = {}

  function refer(node: Node): Node {
    if (Array.isArray(node)) return node.map(refer)
    if (typeof node !== 'object' || node === null) return node
    const name = names.get(JSON.stringify(canonical(node)))
    if (name === undefined) return inside(node)
    schemas[name] ??= inside(node)
    return { $ref: `#/components/schemas/${name}` }
  }

  function inside(node: object): Node {
    return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, refer(value)]))
  }

  const referring = refer(document) as Document & { components?: object }
  const sorted = Object.fromEntries(
    Object.entries(schemas).toSorted(([a], [b]) => (a < b ? -1 : 1)),
  )
  return { ...referring, components: { ...referring.components, schemas: sorted } }
}

/** The same for all spellings of a schema: the library changes the order of members, and constants. */
function canonical(node: Node): Node {
  if (Array.isArray(node)) return node.map(canonical)
  if (typeof node !== 'object' || node === null) return node
  const members = Object.entries(node)
    .filter(([key]) => key !== 'const' && key !== 'x-response-description')
    .map(([key, value]) => [key, canonical(value)] as [string, Node])
  if ('const' in node) members.push(['enum', [node.const]])
  return Object.fromEntries(members.toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
