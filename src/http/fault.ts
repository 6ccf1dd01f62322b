/** Says what is wrong with a refused value: the name of a member and what it must be, never what was sent. */
import type { TSchema } from 'typebox'
import { MAX_JSON } from '../lib/json.ts'
import { validatorOf } from './validator.ts'

/** Beside the phrase of a 400. `expected` has names and bounds. */
export type Fault = { field?: string; expected?: string }

type Schema = {
  type?: string
  description?: string
  enum?: readonly string[]
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  properties?: Record<string, Schema>
  required?: readonly string[]
}

/** Finds the fault of an object that its schema refuses. The members' schemas are compiled for the first one. */
export function createFaultFinder(schema: TSchema): (value: unknown) => Fault {
  const { properties = {}, required = [] } = schema as Schema
  let members: { name: string; isFine: (value: unknown) => boolean }[] | null = null
  return (value) => {
    if (value === undefined)
      return {
        expected: `JSON with each member once, and at most ${MAX_JSON.signs} of { } [ ] , :`,
      }
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      return { expected: 'an object' }
    }
    members ??= Object.entries(properties).map(([name, property]) => {
      const validator = validatorOf(property as TSchema)
      return { name, isFine: (some) => validator.Check(some) }
    })
    for (const { name, isFine } of members) {
      const isThere = Object.hasOwn(value, name)
      const isFault = isThere
        ? !isFine((value as Record<string, unknown>)[name])
        : required.includes(name)
      if (isFault) return { field: name, expected: inWords(properties[name] ?? {}) }
    }
    // The name of a member that nobody knows is the client's own text.
    return { expected: `only ${listed(Object.keys(properties), 'and')}` }
  }
}

/** What a value must be: `20 to 604800`, `at most 80 characters`, `spark, standard or long`. */
export function inWords(schema: object): string {
  const { type, description, minimum, maximum, minLength, maxLength, pattern, ...rest } =
    schema as Schema
  if (rest.enum) return listed(rest.enum, 'or')
  if (type === 'boolean') return 'true or false'
  // Nobody reads a pattern at a glance, so a schema that has one describes it.
  if (pattern !== undefined && description !== undefined) return description
  if (type === 'integer') return range(minimum, maximum) || 'an integer'
  const length = range(minLength, maxLength)
  return length === '' ? 'a string' : `${length} characters`
}

function range(from: number | undefined, to: number | undefined): string {
  if (from !== undefined && to !== undefined) return `${from} to ${to}`
  if (from !== undefined) return `at least ${from}`
  return to === undefined ? '' : `at most ${to}`
}

function listed(names: readonly string[], link: 'and' | 'or'): string {
  const last = names.at(-1) ?? 'nothing'
  return names.length < 2 ? last : `${names.slice(0, -1).join(', ')} ${link} ${last}`
}
