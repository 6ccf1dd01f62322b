/** What can be read off a value that was thrown, whatever it is. */

/** The message of an error; any other value as text. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The `code` of an error, such as `ECONNREFUSED`; empty where it has none. */
export function codeOf(error: unknown): string {
  return typeof error === 'object' &&
    error !== null &&
    'code' in error &&
    typeof error.code === 'string'
    ? error.code
    : ''
}
