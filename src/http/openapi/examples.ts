/** Makes the example of a body from the examples of its members, so that each is written once. */
import type { JsonSchema } from '../../lib/json-schema.ts'

/** Members without an example of their own. */
const OF_FORMAT: Record<string, string> = {
  'date-time': '2030-01-31T09:00:00Z',
  uuid: '0190c7a4-6f3e-7c1d-9b2a-5d8e7f6a4b3c',
}

/** An optional member is in the example if it has one of its own. */
export function exampleOf(schema: JsonSchema): unknown {
  const { examples, enum: values, anyOf, type, format = '', minimum = 0, items } = schema
  if (examples) return examples[0]
  if ('const' in schema) return schema.const
  if (values) return values[0]
  if (anyOf) return exampleOf(anyOf[0] ?? {})
  switch (type) {
    case 'object':
      return ofObject(schema)
    case 'array':
      return items ? [exampleOf(items)] : []
    case 'string':
      return OF_FORMAT[format] ?? 'text'
    case 'integer':
    case 'number':
      return minimum
    case 'boolean':
      return true
    default:
      return null
  }
}

function ofObject({ properties = {}, required = [] }: JsonSchema): object {
  const shown = Object.entries(properties).filter(
    ([name, property]) => required.includes(name) || property.examples,
  )
  return Object.fromEntries(shown.map(([name, property]) => [name, exampleOf(property)]))
}
