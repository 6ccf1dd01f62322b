/** The curl command for an operation. The reader replaces the words in capitals. */
import { headerName, type Operation, type Parameter } from './openapi.ts'

export function curlFor(operation: Operation, baseUrl: string): string {
  const { methods, path, parameters = [], responses = {} } = operation
  const method = methods.includes('POST') ? 'POST' : (methods[0] ?? 'GET')
  const [type, body] = bodyOf(operation)
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

/** A key of the example would find somebody else's order. */
function headerLine({ name, example }: Parameter): string {
  return `${headerName(name)}: ${name === 'idempotency-key' ? 'A_FRESH_UUID' : String(example)}`
}

function bodyOf({ requestBody }: Operation): [type: string | null, part: string] {
  const [type, { example } = {}] = Object.entries(requestBody?.content ?? {})[0] ?? []
  if (type === undefined) return [null, '']
  if (!type.includes('json')) return [type, '--data-binary @FILE']
  return [type, `-d '${JSON.stringify(example)}'`]
}

/** Turns `publicId` into `PUBLIC_ID`. */
function capitals(name: string): string {
  return name
    .replaceAll(/([a-z])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toUpperCase()
}
