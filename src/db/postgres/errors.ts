/**
 * Classifies the errors of PostgreSQL (postgresql.org/docs/current/errcodes-appendix.html): which may be
 * retried, what the log may show, and what to tell the operator.
 */
import { reasonOf } from '../../lib/reason.ts'
import { StoreAway, StoreBusy, StoreError, StoreUnusable, ValueRefused } from '../db.ts'
import { placeOf } from '../server-urls.ts'

export type PostgresError = Error & {
  code?: string
  severity?: string
  table?: string
  constraint?: string
  /** The function of the server that raised the error. Unlike the message, it is in no language. */
  routine?: string
}

/** The message of an error that is ours: the server said nothing at all. */
export const UNANSWERED = 'PostgreSQL did not answer in time'

export const isUnanswered = (error: unknown): boolean =>
  error instanceof Error && error.message.includes(UNANSWERED)

/** Rolled back because of another transaction: the same unit may succeed when it is run again. */
export const isConflict = (code: string): boolean => code === '40001' || code === '40P01'

const LOCK_TIMEOUT = '55P03'

/**
 * The connection is at fault, not the unit: a migration has outdated a plan ("cached plan must not change result
 * type"), a proxy has forgotten a prepared statement, or the server has become a standby. Any other 0A000 is about
 * its own statement.
 */
export const needsFreshConnection = ({ code = '', routine }: PostgresError): boolean =>
  code === '26000' || code === '25006' || (code === '0A000' && routine === 'RevalidateCachedQuery')

/** Whether the connection is lost. Statements in flight may or may not have run. */
export function isLoss(error: unknown): boolean {
  const { code = '', severity = '' } = error as PostgresError
  return severity === 'FATAL' || severity === 'PANIC' || !isState(code) || code.startsWith('08')
}

/** The error for the log. It leaves out messages of the classes 22 and 23, because those quote values. */
export function storeError(error: unknown): StoreError {
  const { code = '', message, table, constraint } = error as PostgresError
  if (!isState(code)) return new StoreAway(`PostgreSQL is away: ${whyLost(error)}`)
  if (code === LOCK_TIMEOUT || isConflict(code))
    return new StoreBusy(`PostgreSQL: ${message} (${code})`)
  // Connections, passwords, missing databases, resources, and an operator who stops the server (classes
  // 08, 28, 3D, 53, 57 and 58), and a standby.
  if (/^(?:08|28|3D|53|57|58|25006)/.test(code))
    return new StoreAway(`PostgreSQL: ${message} (${code})`)
  if (!/^(?:22|23)/.test(code)) return new StoreError(`PostgreSQL: ${message} (${code})`)
  const where = constraint ?? table
  return new ValueRefused(`PostgreSQL refused a value (${code}${where ? `, ${where}` : ''})`)
}

/** Whether a start should wait for this to pass: the server is not up or not reachable yet. */
export function isAway(error: unknown): boolean {
  if (error instanceof StoreUnusable) return false
  const { code = '' } = error as PostgresError
  return !isState(code) ? !isForGood(error) : /^(?:08|53300|57P0)/.test(code)
}

/** Why the store cannot be opened, and what to do. Contains no user, password or values. */
export function unusable(error: unknown, url: string): StoreUnusable {
  const { code = '' } = error as PostgresError
  const { servers, database } = placeOf(url)
  const server = servers === '' ? 'PostgreSQL' : `PostgreSQL at ${servers}`
  if (error instanceof StoreUnusable) return error
  const why = (sentence: string): StoreUnusable =>
    new StoreUnusable(sentence, { isAway: isAway(error) })
  if (error instanceof StoreAway) return why(`${server} cannot be used: ${error.message}.`)
  switch (code) {
    case '28P01':
    case '28000':
      return why(`${server} refuses the user or the password of MAYFLY_DATABASE_URL.`)
    case '3D000':
      return why(`${server} has no database ${database}. Create it: createdb ${database}.`)
    case '42501':
      return why(
        `The user of MAYFLY_DATABASE_URL lacks a privilege on the database ${database}. ` +
          'docs/run/postgresql.md lists those it needs.',
      )
    case '53300':
      return why(`${server} has no free connection. Raise its max_connections, or lower \`pool\`.`)
    default:
      return isState(code)
        ? why(`${server} cannot be used: ${storeError(error).message}.`)
        : why(`${server} cannot be reached: ${whyLost(error)}. Check MAYFLY_DATABASE_URL.`)
  }
}

/** Why no server answers, in words where they are known. */
export function whyLost(error: unknown): string {
  const { code, message } = error as PostgresError
  return reasonOf(error) ?? (code || message)
}

/** SQLSTATE has five characters; Node's own codes are words. */
const isState = (code: string): boolean => /^[0-9A-Z]{5}$/.test(code) && !/^E[A-Z]{4}$/.test(code)

/** Waiting does not repair certificates or `sslmode`. */
function isForGood(error: unknown): boolean {
  const { code = '', message = '' } = error as PostgresError
  return /CERT|SSL|TLS|SIGNED|ENOENT|ALTNAME/.test(code) || /SSL|certificate|SASL/i.test(message)
}
