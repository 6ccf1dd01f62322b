/** Reads a thrown value, which can be anything. */

/** The message of an error, or any other value as text. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The `code` of an error, such as `ECONNREFUSED`; empty if there is none. */
export function codeOf(error: unknown): string {
  return typeof error === 'object' &&
    error !== null &&
    'code' in error &&
    typeof error.code === 'string'
    ? error.code
    : ''
}
