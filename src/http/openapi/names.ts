/** Names the parts of a document: each is written once, and referred to by `$ref`. A schema brings its name along. */
import type { TSchema } from 'typebox'
import { exampleOf } from './examples.ts'

type Node = unknown
type Members = Record<string, Node>

/** Parts that are written once if several operations have them. Others repeat too little to be worth a name. */
const SHARED = ['responses', 'parameters'] as const
type Kind = (typeof SHARED)[number]
/** A member of a schema that names it in the document. */
const SCHEMA_NAME = 'x-schema'

/**
 * @param hasExamples whether schemas have examples. Those of requests stand beside their schema.
 * @returns the paths and their `components`, with a reference at each place of a named or shared part.
 */
export function nameParts(
  paths: object,
  hasExamples: boolean,
): { paths: object; components: object } {
  const { node, schemas } = nameSchemas(paths, hasExamples)
  const components: Record<string, object> = {}
  let shared = node
  for (const kind of SHARED) {
    const { node, parts } = share(shared, { kind, schemas })
    shared = node
    if (Object.keys(parts).length > 0) components[kind] = sorted(parts)
  }
  return { paths: withoutNames(shared) as object, components: { ...components, schemas } }
}

function nameSchemas(paths: Node, hasExamples: boolean): { node: Node; schemas: Members } {
  const schemas: Members = {}

  function refer(node: Node): Node {
    if (Array.isArray(node)) return node.map(refer)
    if (typeof node !== 'object' || node === null) return node
    if (!(SCHEMA_NAME in node)) return inside(node)
    const name = String(node[SCHEMA_NAME])
    const found = hasExamples ? withExample(node, inside(node)) : withoutExample(inside(node))
    schemas[name] ??= found
    if (JSON.stringify(schemas[name]) !== JSON.stringify(found)) {
      throw new Error(`two schemas have the name ${name}`)
    }
    return { $ref: `#/components/schemas/${name}` }
  }

  function inside(node: object): Node {
    const members = Object.entries(node)
      .filter(([key]) => key !== SCHEMA_NAME)
      .map(([key, value]): [string, Node] => [
        key,
        refer(key === 'properties' ? mapMembers(value, withoutExample) : value),
      ])
    const found = Object.fromEntries([...typeOfEnum(node), ...members])
    return 'discriminator' in node ? discriminated(node, found) : nullable(found)
  }

  return { node: refer(paths), schemas: sorted({ ...schemas }) }
}

/** The library leaves out the type of an enumeration. Some generators then take it for anything. */
function typeOfEnum(node: object): [string, Node][] {
  const isUntyped = 'enum' in node && Array.isArray(node.enum) && !('type' in node)
  return isUntyped ? [['type', 'string']] : []
}

/** The example of a body has those of its members. */
function withExample(schema: object, found: Node): Node {
  const isBody = ('properties' in schema || 'anyOf' in schema) && !('examples' in schema)
  return isBody ? { ...(found as Members), examples: [exampleOf(schema as TSchema)] } : found
}

function withoutExample(schema: Node): Node {
  const { examples: _, ...rest } = schema as Members
  return rest
}

/** A union in which the constant of one member says which schema it is. */
function discriminated(
  node: object,
  { anyOf: branches, discriminator, ...rest }: Members,
): Members {
  const { propertyName } = discriminator as { propertyName: string }
  const { anyOf } = node as { anyOf: { properties: Record<string, { const: string }> }[] }
  const references = branches as { $ref: string }[]
  const mapping = Object.fromEntries(
    anyOf.map(({ properties }, i) => [properties[propertyName]?.const, references[i]?.$ref]),
  )
  return { ...rest, oneOf: references, discriminator: { propertyName, mapping } }
}

/** A string or null, a number or null: one schema with two types instead of a union of two schemas. */
function nullable(node: Members): Members {
  const { anyOf, ...rest } = node
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return node
  const [schema, other] = anyOf as Members[]
  const isPlain = ['string', 'integer', 'number'].includes(String(schema?.type)) && !schema?.enum
  if (!isPlain || other?.type !== 'null') return node
  return { ...schema, ...rest, type: [schema?.type, 'null'] }
}

function share(
  paths: Node,
  { kind, schemas }: { kind: Kind; schemas: Members },
): { node: Node; parts: Members } {
  const places = new Map<string, { name: string; part: Members; count: number }>()
  visit(paths, kind, ({ name, part }) => {
    const text = JSON.stringify(part)
    const place = places.get(text) ?? { name, part, count: 0 }
    places.set(text, { ...place, count: place.count + 1 })
    return part
  })
  const names = new Map<string, string>()
  const parts: Members = {}
  const repeated = [...places].filter(([, { count }]) => count > 1)
  // If two parts have one name, the more frequent one gets it, and the other one stays where it is.
  for (const [text, { name, part }] of repeated.toSorted(([, a], [, b]) => b.count - a.count)) {
    // A generator that puts all names in one place would number the second one.
    const free = namesFor(name)
      .map((each) => (each in schemas ? `${each}${SUFFIXES[kind]}` : each))
      .find((each) => !(each in parts))
    if (free === undefined) continue
    names.set(text, free)
    parts[free] = withoutNames(part)
  }
  const node = visit(paths, kind, ({ part }) => {
    const name = names.get(JSON.stringify(part))
    return name === undefined ? part : { $ref: `#/components/${kind}/${name}` }
  })
  return { node, parts }
}

/** What a part is called that would have the name of a schema. */
const SUFFIXES: Record<Kind, string> = {
  responses: 'Answer',
  parameters: 'Parameter',
}

type Place = { name: string; part: Members }

/** Replaces each part of a kind in all operations. */
function visit(paths: Node, kind: Kind, replace: (place: Place) => Node): Node {
  return mapMembers(paths, (methods) =>
    mapMembers(methods, (operation) => {
      const found = { ...(operation as Members) }
      if (kind === 'parameters' && Array.isArray(found.parameters)) {
        found.parameters = found.parameters.map((part) =>
          replace({ name: `${part.name} · ${part.description}`, part }),
        )
      }
      if (kind === 'responses') {
        found.responses = mapMembers(found.responses, (answer) =>
          replace({ name: nameOf(answer as Members), part: answer as Members }),
        )
      }
      return found
    }),
  )
}

/** What a shared answer is called: as it says, or like its schema, or by its description. */
function nameOf(part: Members): string {
  const [{ schema = {} } = {}] = Object.values((part.content ?? {}) as Record<string, Schema>)
  const [, name] = /^#\/components\/schemas\/(\w+)$/.exec(schema.$ref ?? '') ?? []
  const ofSchema = name === 'Error' ? undefined : name
  return String(part['x-name'] ?? ofSchema ?? (part.content ? part.description : 'NoContent'))
}

type Schema = { schema?: { $ref?: string } }

/** `order not found · order expired`: OrderNotFound, and if that is taken, OrderNotFoundOrderExpired. */
function namesFor(text: string): string[] {
  const words = text.split(' · ').map((part) =>
    part
      .split(/[^A-Za-z0-9]+/)
      .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
      .join(''),
  )
  return words.map((_, i) => words.slice(0, i + 1).join('')).filter((name) => name !== '')
}

function withoutNames(node: Node): Node {
  if (Array.isArray(node)) return node.map(withoutNames)
  if (typeof node !== 'object' || node === null) return node
  const members = Object.entries(node).filter(([key]) => key !== 'x-name')
  return Object.fromEntries(members.map(([key, value]) => [key, withoutNames(value)]))
}

function mapMembers(node: Node, map: (value: Node) => Node): Members {
  return Object.fromEntries(
    Object.entries(node as Members).map(([key, value]) => [key, map(value)]),
  )
}

const sorted = (members: Members): Members =>
  Object.fromEntries(Object.entries(members).toSorted(([a], [b]) => (a < b ? -1 : 1)))
