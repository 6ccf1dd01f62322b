/** The store on a PostgreSQL server: reads on some connections, group commit on others. */
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises'
import {
  type Answer,
  type Query,
  type Row,
  type Statement,
  StoreAway,
  StoreError,
  StoreUnusable,
  type Unit,
  type UnmigratedDb,
} from '../db.ts'
import { serverUrls } from '../server-urls.ts'
import type { Connection } from './connection.ts'
import { isAway, unusable } from './errors.ts'
import { refuseTooFewSessions } from './pooler.ts'
import { createReader } from './reader.ts'
import { primaryOf, type Session } from './sessions.ts'
import { createWriter } from './writer.ts'

/** All connections of a store, if the URL has no `pool`. */
const POOL = 10
/** One connection for units, and one for large units; all others read. */
const WRITERS = 2
/** A service and its database are often started together. */
const START_WITHIN_MS = 30_000
const START_EVERY_MS = 500
const MIN_VERSION = 14
/** A migration may rewrite a large table. A server that has disappeared is noticed by TCP, and one that was replaced by `sessions.ts`. */
const MIGRATION_ANSWER_WITHIN_MS = Number.POSITIVE_INFINITY

export type PostgresOptions = {
  /** How long a start waits for a server that is away. */
  startWithinMs?: number
  /** Connections that the process opens beside those of the store. With it, the start makes sure of all behind a pooler. */
  besides?: number
  /** Called once when a start has to wait, with the reason. */
  onWaiting?: (reason: string) => void
}

/**
 * Opens the database that the URL names.
 * @throws StoreUnusable with a sentence that says what to do.
 */
export async function openPostgres(
  url: string,
  { startWithinMs = START_WITHIN_MS, besides, onWaiting = () => {} }: PostgresOptions = {},
): Promise<UnmigratedDb> {
  const { open, slot, lastUrl } = primaryOf(url)
  const { isPooled } = await ready({
    url,
    open,
    deadline: Date.now() + startWithinMs,
    onWaiting,
  })
  const [{ searchParams }] = serverUrls(url).map((one) => new URL(one)) as [URL]
  const pool = Math.max(WRITERS + 1, Number(searchParams.get('pool') ?? POOL))
  if (isPooled && besides !== undefined) await refuseTooFewSessions(lastUrl(), pool + besides)
  const small = slot()
  const writer = createWriter({ small, large: slot() })
  const reader = createReader(Array.from({ length: pool - WRITERS }, slot))
  let isClosed = false
  let lastTurn: Promise<unknown> = Promise.resolve()

  function refuseClosed(): void {
    if (isClosed) throw new StoreError('the store is closed')
  }

  async function scan<T extends Row>(query: Query): Promise<T[]> {
    refuseClosed()
    const rows = await reader.read(query.text, query.values)
    if (!('through' in query)) return rows as T[]
    // The maps run in this thread, one in a turn of its loop, so that requests are answered in between.
    lastTurn = lastTurn.then(() => turn())
    await lastTurn
    return query.through.map(rows, ...query.parameters) as T[]
  }

  return {
    engine: 'postgres',
    async read<T extends Row>(text: string, ...values: Statement['values']) {
      refuseClosed()
      return reader.read(text, values) as Promise<T[]>
    },
    scan,
    async write<Name extends string>(unit: Unit<Name>) {
      refuseClosed()
      return writer.write(unit) as Promise<Answer<Name>>
    },
    async tx(work) {
      refuseClosed()
      return transaction(await small.connection(), work)
    },
    async close() {
      isClosed = true
      await Promise.all([writer.idle(), reader.idle()])
      await Promise.all([writer.end(), reader.end()])
    },
  }
}

async function transaction<T>(
  connection: Connection,
  work: Parameters<UnmigratedDb['tx']>[0],
): Promise<T> {
  const run = async (text: string, values: Statement['values']): Promise<Row[]> => {
    const { results, failure } = await connection.send(
      [{ text, values }],
      MIGRATION_ANSWER_WITHIN_MS,
    )
    const error = failure?.error ?? results[0]?.error
    if (error) throw error
    return results[0]?.rows ?? []
  }
  await run('begin', [])
  try {
    const result = await work({
      run: <R extends Row>(text: string, ...values: Statement['values']) =>
        run(text, values) as Promise<R[]>,
    })
    const { results, failure } = await connection.send(
      [{ text: 'commit', values: [] }],
      MIGRATION_ANSWER_WITHIN_MS,
    )
    if (failure) throw failure.error
    if (results[0]?.tag !== 'COMMIT') throw new StoreError('the transaction was rolled back')
    if (results[0].warning !== null) {
      throw new StoreAway(
        `PostgreSQL warned at the commit; it may have happened (${results[0].warning})`,
      )
    }
    return result as T
  } catch (error) {
    if (connection.isOpen()) await connection.send([{ text: 'rollback', values: [] }])
    throw error
  }
}

/** Waits until the server accepts connections, and checks that the database is usable. */
async function ready(start: {
  url: string
  open: () => Promise<Session>
  deadline: number
  onWaiting: (reason: string) => void
}): Promise<Pick<Session, 'isPooled'>> {
  const { url, open, deadline, onWaiting } = start
  for (let tries = 0; ; tries++) {
    let session: Session
    try {
      session = await open()
    } catch (error) {
      const sentence = unusable(error, url)
      if (!isAway(error) || Date.now() >= deadline) throw sentence
      if (tries === 0) onWaiting(sentence.message)
      await wait(START_EVERY_MS)
      continue
    }
    try {
      await inspect(session)
      return session
    } finally {
      await session.end()
    }
  }
}

async function inspect(connection: Connection): Promise<void> {
  const { results, failure } = await connection.send([
    {
      text: `select current_setting('server_version_num') as version,
        current_setting('server_encoding') as encoding,
        current_setting('transaction_read_only') as read_only`,
      values: [],
    },
  ])
  if (failure) throw new StoreUnusable(`PostgreSQL cannot be used: ${failure.error.message}.`)
  const { version, encoding, read_only } = results[0]?.rows[0] ?? {}
  if (Math.floor(Number(version) / 10_000) < MIN_VERSION) {
    throw new StoreUnusable(`PostgreSQL ${MIN_VERSION} or newer is needed.`)
  }
  if (encoding !== 'UTF8') {
    throw new StoreUnusable(
      `The database has the encoding ${encoding}. Create it with UTF8: createdb --encoding=UTF8 --template=template0.`,
    )
  }
  if (read_only === 'on') {
    throw new StoreUnusable(
      'The database is read-only: it is a standby, or set to be. Use the primary.',
    )
  }
}
