/** What a thread reports of an error of SQLite or of Node. */
import { messageOf } from '../../lib/errors.ts'

/** `isOfValue`: the only fault is a value, which would be refused every time. */
export type Failure = { error: string; isOfValue?: boolean }

/**
 * SQLite's result codes for a refused value (sqlite.org/rescode.html): too big, constraint, mismatch. Below,
 * Node's codes for a value that cannot be converted between SQLite and JavaScript.
 */
const VALUE_CODES = new Set([18, 19, 20])
const VALUE_ERRORS = new Set(['ERR_INVALID_ARG_TYPE', 'ERR_INVALID_ARG_VALUE', 'ERR_OUT_OF_RANGE'])

export function failure(error: unknown): Failure {
  const { code, message } = describe(error)
  const named = error instanceof Error && 'code' in error ? String(error.code) : ''
  const isOfValue = VALUE_CODES.has(Number(code) & 0xff) || VALUE_ERRORS.has(named)
  return { error: message, isOfValue }
}

export function isOfSqlite(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error
}

export function describe(error: unknown): { code: string; message: string } {
  const code = error instanceof Error && 'errcode' in error ? String(error.errcode) : ''
  const named = error instanceof Error && 'code' in error ? String(error.code) : ''
  return {
    code: named === 'CORRUPT' ? named : code,
    message: messageOf(error),
  }
}
