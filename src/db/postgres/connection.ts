/**
 * One connection to PostgreSQL. Statements are sent as a pipeline: all of them at once, prepared by
 * their text, with one Sync at the end, so that a pipeline of any length is one round trip.
 *
 * This uses parts of `pg` that are not documented: the object that `Client.query` takes as a query
 * (`submit` and the `handle…` methods), that it is submitted only after the query before it has
 * ended, and the methods of `client.connection` that send a message each. Any release of `pg` may change
 * them. `test/contract/db.postgres.ts` and `test/db/postgres/postgres.postgres.ts` fail then.
 *
 * The option `pipeline` of `pg` sends a Sync and a Describe with each statement, and a ping then costs half as much again.
 * The library `postgres` pipelines too, but opens a lost connection again by itself, past the checks of `sessions.ts`.
 */
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { Client, type ClientConfig } from 'pg'
import { type Row, StoreError, type Value } from '../db.ts'
import {
  isLoss,
  needsFreshConnection,
  type PostgresError,
  storeError,
  UNANSWERED,
} from './errors.ts'

export type Query = { text: string; values: Value[] }

/**
 * The result of one statement. `error` is set if a value in its rows does not fit into JavaScript, `warning` if
 * the server did what was asked, and not as it should.
 */
export type Result = {
  rows: Row[]
  count: number
  tag: string
  error: StoreError | null
  warning: string | null
}

/**
 * The results up to the first statement that failed. When the connection is lost, it is unknown
 * whether the statements after them have run.
 */
export type PipelineAnswer = {
  results: Result[]
  failure: null | { isLost: boolean; isStale: boolean; code: string; error: StoreError }
}

export type Connection = Awaited<ReturnType<typeof connect>>

const CONNECT_TIMEOUT_MS = 5_000
/** For a server that has disappeared. Longer than the server's own timeouts. */
const ANSWER_TIMEOUT_MS = 30_000
/** A server that has not answered for this long may have been replaced by another. */
const OVERDUE_MS = 3_000
const KEEP_ALIVE_AFTER_MS = 10_000
/** The program has some hundred statement texts. Texts beyond this number are parsed each time. */
const MAX_PREPARED = 500

type Column = { name: string; read: (text: string) => Value }
/** A statement text, prepared for values of these types. One that was null until now is unspecified. */
type Prepared = { name: string; types: number[]; columns: Column[] }
type Field = { name: string; dataTypeID: number }

/** The parts of `pg`'s connection that its type declarations leave out: its socket, and a method for each message. */
type PgConnection = {
  stream: Socket
  parse(statement: { name: string; text: string; types: number[] }): void
  /** Sends bytes as they are, and text as text. */
  bind(values: { statement: string; values: (string | Buffer | null)[] }): void
  describe(what: { type: 'P' }): void
  execute(): void
  close(what: { type: 'S'; name: string }): void
  sync(): void
}

/** The types of values, as PostgreSQL numbers them (pg_type.dat). */
const TYPE_OF = { bytes: 17, integer: 20, text: 25, unspecified: 0 }

/** How every connection is made. What the URL says has precedence. `sessions.ts` has the settings of sessions. */
export function settingsOf(url: string): ClientConfig {
  return {
    connectionString: url,
    fallback_application_name: 'mayfly',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
  }
}

/**
 * @param onOverdue called while the server is slow to answer a pipeline.
 * @throws what `pg` throws, for `errors.ts` to classify.
 */
export async function connect(settings: ClientConfig, onOverdue?: () => void) {
  const client = new Client(settings)
  let isOpen = true
  const lost = (): void => {
    isOpen = false
  }
  // A connection that drops while idle is noticed here; its slot then opens a new one.
  client.on('error', lost)
  client.on('end', lost)
  /** Set by a warning, which comes before the end of its statement. */
  let warning: string | null = null
  client.on('notice', ({ severity, message }) => {
    if (severity === 'WARNING') warning = message ?? severity
  })
  try {
    await client.connect()
  } catch (error) {
    client.end().catch(() => undefined)
    throw error
  }

  const prepared = new Map<string, Prepared[]>()
  let preparedCount = 0
  // Where a pooler gives the sessions of one connection to another, no name may be that of another statement.
  const ownNames = `m${randomBytes(6).toString('hex')}_`
  let lastName = 0
  /** Names that were replaced, or are from a failed pipeline: the server may have prepared them. */
  let toClose: string[] = []

  const drop = (): void => {
    isOpen = false
    // Not `end`, which waits for a server that may not answer.
    ;(client.connection as unknown as PgConnection).stream.destroy()
  }

  /** Known columns, or a new statement to prepare and describe. */
  function find({ text, values }: Query): { statement: Prepared; isNew: boolean } {
    const ofText = prepared.get(text) ?? []
    const known = ofText.find(({ types }) => areOf(types, values))
    if (known) return { statement: known, isNew: false }
    const types = values.map((value, i) => typeOf(value) || knownType(ofText, i))
    // Whatever fits one that knows fewer of these types, fits this one.
    const [replaced, others] = partition(ofText, (one) => isWithin(one.types, types))
    if (replaced.length === 0 && preparedCount >= MAX_PREPARED) {
      return { statement: { name: '', types, columns: [] }, isNew: true }
    }
    const statement = { name: `${ownNames}${++lastName}`, types, columns: [] }
    preparedCount += 1 - replaced.length
    // Earlier statements of this pipeline may use them, so they are closed with the next one.
    toClose.push(...replaced.map(({ name }) => name))
    prepared.set(text, [...others, statement])
    return { statement, isNew: true }
  }

  function forget(names: Set<string>): void {
    for (const [text, ofText] of prepared) {
      const left = ofText.filter(({ name }) => !names.has(name))
      preparedCount -= ofText.length - left.length
      if (left.length === 0) prepared.delete(text)
      else if (left.length < ofText.length) prepared.set(text, left)
    }
    toClose.push(...names)
  }

  function send(pipeline: Query[], answerWithinMs: number): Promise<PipelineAnswer> {
    return new Promise((resolve) => {
      const statements: Prepared[] = []
      const results: Result[] = []
      const added = new Set<string>()
      let current: Result = emptyResult()

      const fail = (error: unknown): void => {
        clearTimeout(answerTimer)
        const { code = '' } = error as PostgresError
        const isLost = isLoss(error)
        const isStale = needsFreshConnection(error as PostgresError)
        if (isLost) drop()
        else forget(added)
        resolve({ results, failure: { isLost, isStale, code, error: storeError(error) } })
      }
      const sentAt = performance.now()
      // The clock is read again, because a test that controls the timers may fire them early.
      const onAnswerTimer = (): void => {
        const waited = performance.now() - sentAt
        if (waited < answerWithinMs) {
          if (waited >= OVERDUE_MS) onOverdue?.()
          answerTimer = setTimeout(onAnswerTimer, OVERDUE_MS)
          return
        }
        drop()
        fail(new Error(UNANSWERED))
      }
      let answerTimer = setTimeout(onAnswerTimer, OVERDUE_MS)

      // All messages leave in one write.
      function submit(connection: PgConnection): void {
        connection.stream.cork()
        for (const name of toClose) connection.close({ type: 'S', name })
        toClose = []
        for (const query of pipeline) {
          const { statement, isNew } = find(query)
          const { name, types } = statement
          if (isNew) connection.parse({ name, text: query.text, types })
          connection.bind({ statement: name, values: query.values.map(sent) })
          if (isNew) connection.describe({ type: 'P' })
          connection.execute()
          if (isNew && name !== '') added.add(name)
          statements.push(statement)
        }
        connection.sync()
        connection.stream.uncork()
      }

      // Client.query() accepts this shape, and passes every message of the answer to it.
      client.query({
        submit: submit as never,
        handleRowDescription({ fields }: { fields: Field[] }) {
          const statement = statements[results.length]
          if (statement) statement.columns = fields.map(columnOf)
        },
        handleDataRow({ fields }: { fields: (string | null)[] }) {
          const columns = statements[results.length]?.columns ?? []
          try {
            current.rows.push(rowOf(columns, fields))
          } catch (error) {
            current.error = error as StoreError
          }
        },
        handleCommandComplete({ text }: { text: string }) {
          current.tag = text
          current.count = countOf(text)
          current.warning = warning
          warning = null
          results.push(current)
          current = emptyResult()
        },
        handleEmptyQuery: () => fail(new Error('an empty statement')),
        handlePortalSuspended() {},
        handleCopyInResponse() {},
        handleCopyData() {},
        handleError: fail,
        handleReadyForQuery() {
          clearTimeout(answerTimer)
          resolve({ results, failure: null })
        },
      })
    })
  }

  return {
    isOpen: (): boolean => isOpen,
    /** The number of the server's process, as it was told when the connection was made. */
    announcedPid: (client as unknown as { processID: number | null }).processID,
    /** Never rejects. One pipeline at a time. Without `answerWithinMs`, no answer for half a minute is a loss. */
    send: (pipeline: Query[], answerWithinMs = ANSWER_TIMEOUT_MS): Promise<PipelineAnswer> =>
      pipeline.length === 0 ? Promise.resolve(NOTHING) : send(pipeline, answerWithinMs),
    /** Closes the socket at once, even during a pipeline. */
    drop,
    /** Ends the session. No pipeline may be under way. */
    async end(): Promise<void> {
      isOpen = false
      await client.end()
    },
  }
}

const NOTHING: PipelineAnswer = { results: [], failure: null }

const emptyResult = (): Result => ({ rows: [], count: 0, tag: '', error: null, warning: null })

function typeOf(value: Value): number {
  if (typeof value === 'number') return TYPE_OF.integer
  if (typeof value === 'string') return TYPE_OF.text
  return value === null ? TYPE_OF.unspecified : TYPE_OF.bytes
}

/** What `pg` sends: of bytes, only a Buffer. */
function sent(value: Value): string | Buffer | null {
  if (value === null || typeof value === 'string') return value
  if (typeof value === 'number') return String(value)
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
}

/** A null is of any type. */
const areOf = (types: number[], values: Value[]): boolean =>
  types.length === values.length &&
  types.every((type, i) => values[i] === null || type === typeOf(values[i] as Value))

/** The type that this parameter had when it was not null. */
function knownType(ofText: Prepared[], i: number): number {
  for (const { types } of ofText) if (types[i]) return types[i]
  return TYPE_OF.unspecified
}

/** Whether types differ only where the first ones are unspecified. */
const isWithin = (types: number[], more: number[]): boolean =>
  types.every((type, i) => type === TYPE_OF.unspecified || type === more[i])

function partition<T>(all: T[], isFirst: (one: T) => boolean): [T[], T[]] {
  return [all.filter(isFirst), all.filter((one) => !isFirst(one))]
}

/** `UPDATE 1`, `INSERT 0 1`, `BEGIN`. */
const countOf = (tag: string): number => Number(tag.slice(tag.lastIndexOf(' ') + 1)) || 0

function rowOf(columns: Column[], fields: (string | null)[]): Row {
  const row: Row = {}
  for (let i = 0; i < columns.length; i++) {
    const { name, read } = columns[i] as Column
    const text = fields[i] ?? null
    row[name] = text === null ? null : read(text)
  }
  return row
}

function columnOf({ name, dataTypeID }: Field): Column {
  return { name, read: READERS[dataTypeID] ?? String }
}

/** By type: bool, bytea, int8, int2, int4, numeric (of a sum). All others are text. */
const READERS: Record<number, (text: string) => Value> = {
  16: (text) => (text === 't' ? 1 : 0),
  17: bytesOf,
  20: integerOf,
  21: Number,
  23: Number,
  1700: integerOf,
}

function integerOf(text: string): number {
  const number = Number(text)
  if (!Number.isSafeInteger(number)) throw new StoreError('an integer is beyond 2^53 - 1')
  return number
}

function bytesOf(text: string): Uint8Array {
  if (!text.startsWith('\\x')) throw new StoreError('bytea_output of PostgreSQL is not hex')
  const { buffer, byteOffset, length } = Buffer.from(text.slice(2), 'hex')
  return new Uint8Array(buffer, byteOffset, length)
}
