/** The curl command for an operation. The reader replaces the words in capitals. */
import type { Operation } from './openapi.ts'

export function curlFor(operation: Operation, baseUrl: string): string {
  const { methods, path, parameters = [], responses = {}, requestBody, security = [] } = operation
  const method = methods.includes('POST') ? 'POST' : (methods[0] ?? 'GET')
  const isStream = Object.values(responses).some(
    ({ content = {} }) => 'text/event-stream' in content,
  )
  // `publicId` becomes `PUBLIC_ID`.
  const address = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    name.replaceAll(/(?=[A-Z])/g, '_').toUpperCase(),
  )
  const start = `curl ${isStream ? '-N ' : ''}${method === 'GET' ? '' : `-X ${method} `}`
  const parts = [`${start}'${baseUrl}${address}'`]
  if (security.length > 0 && security.every((way) => 'bearer' in way))
    parts.push(`-H 'Authorization: Bearer TOKEN'`)
  for (const { in: place, name, required, example } of parameters) {
    if (place !== 'header' || !required || name === 'authorization') continue
    // A key of the example would find somebody else's order.
    parts.push(`-H '${name}: ${name === 'idempotency-key' ? 'A_FRESH_UUID' : example}'`)
  }
  const [[type, { example }] = ['', {}]] = Object.entries(requestBody?.content ?? {})
  if (type !== '') parts.push(`-H 'Content-Type: ${type}'`)
  if (type.includes('json')) parts.push(`-d '${JSON.stringify(example)}'`)
  else if (type !== '') parts.push('--data-binary @FILE')
  return parts.join(' \\\n  ')
}
