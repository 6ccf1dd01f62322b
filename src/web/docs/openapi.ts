/** The parts of the OpenAPI document that the reference shows, and the text of a schema. */

const LIMITS = ['minimum', 'maximum', 'minLength', 'maxLength', 'default'] as const

export type Schema = { [limit in (typeof LIMITS)[number]]?: unknown } & {
  /** The name of a shared schema. */
  title?: string
  type?: string | string[]
  format?: string
  description?: string
  enum?: unknown[]
  const?: unknown
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  anyOf?: Schema[]
  oneOf?: Schema[]
}

/** A parameter, a header, or a body. */
type Part = { description?: string; required?: boolean; schema?: Schema; example?: unknown }

export type Content = Record<string, Part>

export type Answer = { description: string; headers?: Record<string, Part>; content?: Content }

type Described = {
  summary?: string
  tags?: string[]
  parameters?: (Part & { name: string; in: string })[]
  requestBody?: { content?: Content }
  responses?: Record<string, Answer>
  security?: Record<string, unknown>[]
}

export type Openapi = {
  paths: Record<string, Record<string, Described>>
  components?: { schemas?: Record<string, Schema> }
}

/** An operation. It has several methods if they all do the same. */
export type Operation = Described & { id: string; path: string; methods: string[]; tag: string }

/** Deeper fields are only in the document. A schema that contains itself would never end. */
const MAX_DEPTH = 5

/** The operations in the order of the document, which now has each shared part in the place of its references. */
export function operationsOf(document: Openapi): Operation[] {
  for (const [name, schema] of Object.entries(document.components?.schemas ?? {})) {
    schema.title = name
  }
  link(document, document)
  return Object.entries(document.paths).flatMap(([path, methods]) => {
    const found = new Map<string, Operation>()
    for (const [name, described] of Object.entries(methods)) {
      const what = [described.summary, ...Object.keys(described.responses ?? {})].join()
      const id =
        `${name}${path}`
          .toLowerCase()
          .match(/[a-z0-9]+/g)
          ?.join('-') ?? ''
      const tag = described.tags?.[0] ?? 'other'
      const operation = found.get(what) ?? { ...described, id, path, methods: [], tag }
      operation.methods.push(name.toUpperCase())
      found.set(what, operation)
    }
    return [...found.values()]
  })
}

function link(node: object, document: object): void {
  for (const [key, value] of Object.entries(node)) {
    if (typeof value !== 'object' || value === null) continue
    if (typeof value.$ref !== 'string') link(value, document)
    else {
      const [, ...keys] = value.$ref.split('/')
      const found = keys.reduce(
        (at: unknown, each: string) => (at as Record<string, unknown>)[each],
        document,
      )
      ;(node as Record<string, unknown>)[key] = found
    }
  }
}

/** A schema as text, much like TypeScript, with what is said of a field above it. */
export function shapeOf(schema: Schema, depth = 0): string {
  const choices = schema.anyOf ?? schema.oneOf
  if (choices) return choices.map((choice) => shapeOf(choice, depth)).join(' | ')
  const values = schema.const === undefined ? schema.enum : [schema.const]
  if (values) return values.map((value) => JSON.stringify(value)).join(' | ')
  if (schema.items) return `list of ${shapeOf(schema.items, depth)}`
  if (!schema.properties || depth > MAX_DEPTH) {
    return schema.format ?? [schema.type ?? 'any'].flat().join(' | ')
  }
  const { title, properties, required = [] } = schema
  const lines = Object.entries(properties).map(([name, value]) =>
    lineOf(name, { schema: value, required: required.includes(name) }, depth + 1),
  )
  return `${title === undefined ? '' : `${title} `}{\n${lines.join('\n')}\n${'  '.repeat(depth)}}`
}

/** A field, `?` after the name of an optional one, and its note in the line above. */
export function lineOf(name: string, part: Part, depth = 0): string {
  const { description, required, schema = {} } = part
  const pad = '  '.repeat(depth)
  const notes = [description, noteOf(schema)].filter(Boolean).join('; ')
  const above = notes === '' ? '' : `${pad}// ${notes}\n`
  return `${above}${pad}${name}${required ? '' : '?'}: ${shapeOf(schema, depth)}`
}

/** The description of a value, then its limits in the words of JSON Schema. */
export function noteOf(schema: Schema): string {
  const limits = LIMITS.map((name) => schema[name] !== undefined && `${name} ${schema[name]}`)
  return [schema.description, ...limits].filter(Boolean).join('; ')
}
