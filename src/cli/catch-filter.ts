/** `--filter method=POST,contentType=…,q=…`: the service's own filter, in one text. */
import type { EventFilter } from '../client/index.ts'
import { CliError, EXIT } from './exit.ts'

/** @throws CliError for a name or a value that the service would not take. */
export function parseFilter(text: string | undefined): EventFilter {
  const filter: EventFilter = {}
  for (const part of (text ?? '').split(',').filter((some) => some !== '')) {
    const [name = '', ...rest] = part.split('=')
    const value = rest.join('=')
    if (value === '') throw badFilter()
    if (name === 'method' || name === 'contentType' || name === 'q') filter[name] = value
    else if (name === 'access' && (value === 'public' || value === 'authenticated')) {
      filter.access = value
    } else throw badFilter()
  }
  return filter
}

const badFilter = (): CliError =>
  new CliError(
    '--filter is a list such as method=POST,contentType=application/json,q=opened,access=public',
    EXIT.usage,
  )
