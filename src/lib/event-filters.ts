/**
 * The filters of the event list that compare one value. The service, the SDK and the command line read
 * them here, so that they agree.
 */
import { mediaType } from './media-type.ts'

/** The fields of an event that filters compare. */
type Compared = { access: string; method: string; contentType: string | null }

type Filter = {
  /** The column of the store with the value. */
  column: string
  /** The possible values, if there are few. */
  values?: readonly string[]
  /** The field's value that an event must have to match the requested value. */
  normalized(requested: string): string | null
  fieldOf(event: Compared): string | null
}

export const EVENT_FILTERS: Record<'access' | 'method' | 'contentType', Filter> = {
  access: {
    column: 'access',
    values: ['public', 'authenticated'],
    normalized: (requested) => requested,
    fieldOf: ({ access }) => access,
  },
  method: {
    column: 'method',
    normalized: (requested) => requested.toUpperCase(),
    fieldOf: ({ method }) => method,
  },
  contentType: {
    column: 'media_type',
    normalized: mediaType,
    fieldOf: ({ contentType }) => mediaType(contentType),
  },
}

type FilterName = keyof typeof EVENT_FILTERS

export const FILTER_NAMES = Object.keys(EVENT_FILTERS) as FilterName[]

/** Whether there is a filter of this name that accepts this value. */
export function isFilter(name: string, value: string): boolean {
  if (!Object.hasOwn(EVENT_FILTERS, name)) return false
  const { values } = EVENT_FILTERS[name as FilterName]
  return values === undefined || values.includes(value)
}
