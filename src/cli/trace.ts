/**
 * What `--debug` says on stderr: requests, statuses, times and causes. It may be pasted into a bug report, so it has
 * no header, no body, no message of an error (which can quote a header), and of a path only what no secret looks like.
 */
import { codeOf } from '../lib/errors.ts'
import { causesOf } from '../lib/reason.ts'

/** The words of our paths. Ids and tokens are longer, or have an underscore, a digit or an upper-case letter. */
const WORD = /^[a-z.-]{1,20}$/
const NUMBER = /^\d{1,15}$/
/** Such as `catch` of `catch_2mQx…`. */
const KIND = /^([a-z]{1,10})_/
/** The API has versions in its paths, and so have the nodes. */
const VERSION = /^v\d{1,2}$/

/** A fetch that tells of each request. */
export function traced(
  fetch: typeof globalThis.fetch,
  tell: (line: string) => void,
): typeof globalThis.fetch {
  return async (input, init) => {
    const begun = performance.now()
    const took = (): string => `${Math.round(performance.now() - begun)} ms`
    const url = input instanceof Request ? input.url : String(input)
    const what = `${init?.method ?? 'GET'} ${shownAddress(url)}`
    try {
      const response = await fetch(input, init)
      const after = response.headers.get('retry-after')
      const wait = after !== null && NUMBER.test(after) ? `, retry after ${after} s` : ''
      tell(`${what}: ${response.status} in ${took()}${wait}`)
      return response
    } catch (error) {
      tell(`${what}: ${chainOf(error)} after ${took()}`)
      throw error
    }
  }
}

/** The classes and codes of an error and its causes. */
export function chainOf(error: unknown): string {
  const chain = causesOf(error).map((cause) => `${cause.name} ${codeOf(cause)}`.trim())
  return chain.length > 0 ? chain.join(', caused by ') : typeof error
}

/** Where in the program it was thrown. The first lines have its message. */
export function placeOf(error: unknown): string[] {
  const { stack = '' } = error instanceof Error ? error : {}
  return stack
    .split('\n')
    .filter((line) => /^ {4}at [\w.<>[\] ]*\(?(?:file|node):[^?#]*$/.test(line))
}

/** An address without credentials, and without what could be a secret in its path and query. */
export function shownAddress(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol)) return '(an address)'
  const path = url.pathname.split('/').map(shownSegment).join('/')
  const query = [...url.searchParams].map(
    ([name, value]) => `${shownSegment(name)}=${NUMBER.test(value) ? value : '…'}`,
  )
  return `${url.origin}${path}${query.length > 0 ? `?${query.join('&')}` : ''}`
}

function shownSegment(text: string): string {
  if (text === '' || WORD.test(text) || NUMBER.test(text) || VERSION.test(text)) return text
  const [, kind] = KIND.exec(text) ?? []
  return kind === undefined ? '…' : `${kind}_…`
}
