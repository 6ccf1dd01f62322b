/** The parts of /openapi.json that the reference shows. */

export type Schema = {
  $ref?: string
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
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  default?: unknown
}

export type Parameter = {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  description?: string
  schema?: Schema
  example?: unknown
}

type Content = Record<string, { schema?: Schema; example?: unknown }>

export type Answer = {
  description: string
  headers?: Record<string, { description?: string; schema?: Schema }>
  content?: Content
}

type Described = {
  summary?: string
  tags?: string[]
  parameters?: Parameter[]
  requestBody?: { required?: boolean; content?: Content }
  responses?: Record<string, Answer>
  security?: Record<string, unknown>[]
}

export type Openapi = {
  info: { title: string; version: string }
  paths: Record<string, Record<string, Described>>
  components?: { schemas?: Record<string, Schema> }
  /** A group of operations may have a document of its own. */
  tags?: { name: string; externalDocs?: { url: string } }[]
}

/** An operation. It has several methods if they all do the same. */
export type Operation = Described & { id: string; path: string; methods: string[]; tag: string }

/** Deeper fields are only in openapi.json. A schema that contains itself would never end. */
const MAX_DEPTH = 5

/** One document of several, with every shared part where it is used; only schemas keep their names. */
export function joined(documents: readonly Openapi[]): Openapi {
  const whole = documents.map((each) => ({
    ...each,
    paths: unfolded(each.paths, each) as Openapi['paths'],
  }))
  const [first] = whole
  if (!first) throw new Error('there is no document')
  return {
    ...first,
    paths: Object.assign({}, ...whole.map(({ paths }) => paths)),
    components: {
      schemas: Object.assign({}, ...whole.map(({ components }) => components?.schemas)),
    },
  }
}

function unfolded(node: unknown, document: Openapi): unknown {
  if (Array.isArray(node)) return node.map((each) => unfolded(each, document))
  if (typeof node !== 'object' || node === null) return node
  const [, kind = '', name = ''] =
    ('$ref' in node && /^#\/components\/(\w+)\/(\w+)$/.exec(String(node.$ref))) || []
  if (kind !== '' && kind !== 'schemas') {
    const parts = document.components as Record<string, Record<string, unknown>> | undefined
    return unfolded(parts?.[kind]?.[name], document)
  }
  return Object.fromEntries(
    Object.entries(node).map(([key, value]) => [key, unfolded(value, document)]),
  )
}

/** The operations in the order of the document. Those that differ only in their method are one. */
export function operationsOf({ paths }: Openapi): Operation[] {
  return Object.entries(paths).flatMap(([path, methods]) => {
    const found: Operation[] = []
    for (const [name, described] of Object.entries(methods)) {
      const method = name.toUpperCase()
      const same = found.find((other) => isSame(other, described))
      if (same) same.methods.push(method)
      else {
        const tag = described.tags?.[0] ?? 'other'
        found.push({ ...described, id: idOf(method, path), path, methods: [method], tag })
      }
    }
    return found
  })
}

const isSame = (one: Described, other: Described): boolean =>
  one.summary === other.summary &&
  Object.keys(one.responses ?? {}).join() === Object.keys(other.responses ?? {}).join()

/** The schema that a reference points to, with its name. */
export function resolved(
  schema: Schema,
  { components }: Openapi,
): { schema: Schema; name: string | null } {
  const name = /^#\/components\/schemas\/(.+)$/.exec(schema.$ref ?? '')?.[1]
  const found = name === undefined ? undefined : components?.schemas?.[name]
  return found ? { schema: found, name: name ?? null } : { schema, name: null }
}

/** A schema as text, much like TypeScript, with what is said of a field above it. */
export function shapeOf(some: Schema, openapi: Openapi, depth = 0): string {
  const { schema, name } = resolved(some, openapi)
  const choices = schema.anyOf ?? schema.oneOf
  if (choices) return choices.map((choice) => shapeOf(choice, openapi, depth)).join(' | ')
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (schema.items) return `list of ${shapeOf(schema.items, openapi, depth)}`
  if (!schema.properties || depth > MAX_DEPTH) {
    const type = [schema.type ?? 'any'].flat().join(' | ')
    return schema.format === 'binary' ? 'bytes' : (schema.format ?? type)
  }
  const { properties, required = [] } = schema
  const rows = Object.entries(properties).map(([field, value]) => ({
    name: field,
    note: noteOf(value),
    isRequired: required.includes(field),
    shape: shapeOf(value, openapi, depth + 1),
  }))
  return `${name === null ? '' : `${name} `}{\n${linesOf(rows, depth + 1)}\n${INDENT.repeat(depth)}}`
}

const INDENT = '  '

type Row = { name: string; note: string; isRequired: boolean; shape: string }

/** A line for each field, `?` after the name of an optional one, and its note in the line above. */
export function linesOf(rows: readonly Row[], depth = 0): string {
  const pad = INDENT.repeat(depth)
  return rows
    .map(({ name, note, isRequired, shape }) => {
      const above = note === '' ? '' : `${pad}// ${note}\n`
      return `${above}${pad}${name}${isRequired ? '' : '?'}: ${shape}`
    })
    .join('\n')
}

/** The description of a value, then its limits. */
export function noteOf({ description, pattern, default: preset, ...limits }: Schema): string {
  const { minimum, maximum, minLength, maxLength, format } = limits
  const unit = format === 'binary' ? ' bytes' : ' characters'
  const parts = [
    description,
    range(minimum, maximum, ''),
    range(minLength, maxLength, unit),
    pattern !== undefined && `matches ${pattern}`,
    preset !== undefined && `${JSON.stringify(preset)} if left out`,
  ]
  return parts.filter((part) => typeof part === 'string' && part !== '').join('; ')
}

/** A header's name as people write it. The document has it in lower case. */
export function headerName(name: string): string {
  return name.replaceAll(/(^|-)[a-z]/g, (some) => some.toUpperCase())
}

function range(from: number | undefined, to: number | undefined, unit: string): string {
  if (from !== undefined && to !== undefined) return `${from} to ${to}${unit}`
  if (from !== undefined) return `at least ${from}${unit}`
  return to === undefined ? '' : `at most ${to}${unit}`
}

function idOf(method: string, path: string): string {
  return `${method}${path}`
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replace(/-$/, '')
}
