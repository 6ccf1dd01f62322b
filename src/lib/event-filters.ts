/**
 * The one list of filters of the event list that compare a value. The query's schema, its SQL, the SDK, `--filter`, the
 * tools of MCP and the guides are made of it.
 */

/** The fields of an event that filters compare. */
type Compared = { access: string; method: string; contentType: string | null }

type Filter = {
  /** JSON Schema of the requested value, with a description and an example. */
  schema: {
    readonly type?: 'string'
    readonly enum?: readonly string[]
    readonly minLength?: number
    readonly maxLength?: number
    readonly description: string
    readonly examples: readonly [string]
  }
  /** The column of the store with the value. */
  column: string
  /** The value that column and field of an event must have to match the requested value. */
  normalized(requested: string): string | null
  fieldOf(event: Compared): string | null
}

export const EVENT_FILTERS = {
  access: {
    schema: {
      enum: ['public', 'authenticated'],
      description: 'Whether the sender had the ingest token',
      examples: ['authenticated'],
    },
    column: 'access',
    normalized: (requested) => requested,
    fieldOf: ({ access }) => access,
  },
  method: {
    schema: {
      type: 'string',
      minLength: 1,
      maxLength: 20,
      description: 'Only requests with this method',
      examples: ['POST'],
    },
    column: 'method',
    normalized: (requested) => requested.toUpperCase(),
    fieldOf: ({ method }) => method,
  },
  contentType: {
    schema: {
      type: 'string',
      minLength: 1,
      maxLength: 255,
      description: 'Only requests of this type, without its parameters',
      examples: ['application/json'],
    },
    column: 'media_type',
    normalized: mediaType,
    fieldOf: ({ contentType }) => mediaType(contentType),
  },
} as const satisfies Record<string, Filter>

export type FilterName = keyof typeof EVENT_FILTERS
/** What a filter can be asked for. */
export type FilterValue<Name extends FilterName> = (typeof EVENT_FILTERS)[Name]['schema'] extends {
  enum: readonly (infer Value)[]
}
  ? Value
  : string

export const FILTER_NAMES = Object.keys(EVENT_FILTERS) as FilterName[]

/** An example of `--filter`. */
export const FILTER_EXAMPLE = FILTER_NAMES.map(
  (name) => `${name}=${EVENT_FILTERS[name].schema.examples[0]}`,
).join(',')

/** Whether there is a filter of this name that accepts this value. */
export function isFilter(name: string, value: string): boolean {
  if (!Object.hasOwn(EVENT_FILTERS, name)) return false
  const { schema }: Filter = EVENT_FILTERS[name as FilterName]
  return schema.enum === undefined || schema.enum.includes(value)
}

/** The search of the event list, beside the filters. */
export const SEARCH = {
  type: 'string',
  maxLength: 120,
  description:
    'Only requests that contain this text in path or query (as sent, or decoded), headers (each as `name: value`) or text body, which can be gzip, deflate or br',
  examples: ['invoice.paid'],
} as const

/** The texts of a URL that a search looks at: as sent, and as people read it. */
export function urlTexts({ path, query }: { path: string; query: string }): string[] {
  const texts = [path, query]
  if (path.includes('%')) texts.push(decoded(path))
  if (query.includes('%') || query.includes('+')) texts.push(decoded(query.replaceAll('+', ' ')))
  return texts
}

/** Each run of `%` and two digits as UTF-8. What is no UTF-8 stays as it was sent. */
const decoded = (text: string): string =>
  text.replace(/(?:%[0-9a-f]{2})+/gi, (run) => {
    try {
      return decodeURIComponent(run)
    } catch {
      return run
    }
  })

/** The media type in lower case, without parameters (RFC 9110 §8.3.1). */
export function mediaType(contentType: string | null): string | null {
  return contentType === null ? null : (contentType.split(';')[0] ?? '').trim().toLowerCase()
}
