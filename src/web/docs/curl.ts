/** The curl command for an operation. The reader replaces the words in capitals. */
import {
  headerName,
  type Openapi,
  type Operation,
  type Parameter,
  resolved,
  type Schema,
} from './openapi.ts'

/** How deep the example of a body goes. A deeper one would no longer be an example. */
const MAX_DEPTH = 4

export function curlFor(operation: Operation, openapi: Openapi, baseUrl: string): string {
  const { methods, path, parameters = [], responses = {} } = operation
  const method = methods.includes('POST') ? 'POST' : (methods[0] ?? 'GET')
  const [type, body] = bodyOf(operation, openapi)
  const address = baseUrl + path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => capitals(name))
  const isStream = Object.values(responses).some(({ content = {} }) =>
    Object.hasOwn(content, 'text/event-stream'),
  )
  const parts = [
    `curl ${isStream ? '-N ' : ''}${method === 'GET' ? '' : `-X ${method} `}'${address}'`,
    ...(needsToken(operation) ? [`-H 'Authorization: Bearer ${tokenOf(operation)}'`] : []),
    ...parameters.filter(isNeededHeader).map((header) => `-H '${headerLine(header)}'`),
    ...(type === null ? [] : [`-H 'Content-Type: ${type}'`, body]),
  ]
  return parts.join(' \\\n  ')
}

/** Whether the operation always needs a bearer token. */
export function needsToken({ security = [] }: Operation): boolean {
  return security.length > 0 && security.every((way) => Object.hasOwn(way, 'bearer'))
}

function tokenOf({ tag, path }: Operation): string {
  if (tag === 'gate') return 'PROJECT_CAPABILITY'
  if (tag === 'whisper') return 'READ_TOKEN'
  return path.startsWith('/p/') ? 'PING_TOKEN' : 'OWNER_TOKEN'
}

function isNeededHeader({ in: place, name, required }: Parameter): boolean {
  return place === 'header' && required === true && name !== 'authorization'
}

function headerLine({ name, schema = {} }: Parameter): string {
  if (name === 'idempotency-key') return `${headerName(name)}: A_FRESH_UUID`
  return `${headerName(name)}: ${String(schema.enum?.[0] ?? capitals(name.replace(/^x-/, '')))}`
}

function bodyOf({ requestBody }: Operation, openapi: Openapi): [type: string | null, part: string] {
  const [type, { schema = {} } = {}] = Object.entries(requestBody?.content ?? {})[0] ?? []
  if (type === undefined) return [null, '']
  if (!type.includes('json')) return [type, '--data-binary @FILE']
  return [type, `-d '${JSON.stringify(sample(schema, openapi))}'`]
}

/** An example for a schema: its required fields, or its first field if it requires none. */
function sample(some: Schema, openapi: Openapi, { name = 'value', depth = 0 } = {}): unknown {
  const { schema } = resolved(some, openapi)
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  if (schema.type === 'integer' || schema.type === 'number') return schema.minimum ?? 1
  if (schema.type === 'boolean') return true
  if (!schema.properties || depth > MAX_DEPTH) return capitals(name)
  const names = schema.required ?? Object.keys(schema.properties).slice(0, 1)
  return Object.fromEntries(
    names.map((each) => {
      const property = schema.properties?.[each] ?? {}
      return [each, sample(property, openapi, { name: each, depth: depth + 1 })]
    }),
  )
}

/** Turns `publicId` into `PUBLIC_ID`. */
function capitals(name: string): string {
  return name
    .replaceAll(/([a-z])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toUpperCase()
}
