/** `--filter method=POST,contentType=…,q=…`: the service's event filter as one option. */
import type { EventFilter } from '../client/index.ts'
import { isFilter } from '../lib/event-filters.ts'
import { CliError, EXIT } from './exit.ts'

/** @throws CliError for a name or value that the service would refuse. */
export function parseFilter(text: string | undefined): EventFilter {
  const filter: EventFilter = {}
  for (const part of (text ?? '').split(',').filter((some) => some !== '')) {
    const [name = '', ...rest] = part.split('=')
    const value = rest.join('=')
    if (value === '') throw badFilter()
    if (name !== 'q' && !isFilter(name, value)) throw badFilter()
    Object.assign(filter, { [name]: value })
  }
  return filter
}

const badFilter = (): CliError =>
  new CliError(
    '--filter must be a list such as method=POST,contentType=application/json,q=opened,access=public',
    EXIT.usage,
  )
