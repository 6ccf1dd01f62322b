/**
 * The filters of the event list that compare one value. The service, the SDK and the command line read
 * them here, so that they agree.
 */
import { mediaType } from './media-type.ts'

/** What of an event is compared. */
type Compared = { access: string; method: string; contentType: string | null }

type Filter = {
  /** The column of the store that has the value. */
  column: string
  /** The values that can be asked for, if there are few. */
  values?: readonly string[]
  /** What an event must have, to be listed for the value that was asked for. */
  normalized(asked: string): string | null
  fieldOf(event: Compared): string | null
}

export const EVENT_FILTERS: Record<'access' | 'method' | 'contentType', Filter> = {
  access: {
    column: 'access',
    values: ['public', 'authenticated'],
    normalized: (asked) => asked,
    fieldOf: ({ access }) => access,
  },
  method: {
    column: 'method',
    normalized: (asked) => asked.toUpperCase(),
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

/** Whether the service takes this value for a filter of this name. */
export function isFilter(name: string, value: string): boolean {
  if (!Object.hasOwn(EVENT_FILTERS, name)) return false
  const { values } = EVENT_FILTERS[name as FilterName]
  return values === undefined || values.includes(value)
}
