/**
 * A pooler between Mayfly and PostgreSQL must give each connection a session of its own. One that gives each
 * transaction another session (PgBouncer's `pool_mode = transaction`) loses settings, LISTEN and prepared
 * statements, and answers as if it did not.
 */
import { randomUUID } from 'node:crypto'
import { StoreUnusable } from '../db.ts'
import { type Connection, connect, settingsOf } from './connection.ts'
import { isUnanswered } from './errors.ts'

/** Other users of the pooler may hide in one round that sessions are shared, hardly in all of them. */
const ROUNDS = 8
/** A pooler opens its sessions one after the other, to a server that may be far away. */
const SESSIONS_WITHIN_MS = 10_000
const SHARED = new Set(['26000', '42P05', '08P01'])

const MARK = `select set_config('mayfly.session', $1, false)`
const MARKED = { text: `select current_setting('mayfly.session', true) as mark`, values: [] }
const ONE = { text: 'select 1 as one', values: [] }
const BEGIN = { text: 'begin', values: [] }
const ROLLBACK = { text: 'rollback', values: [] }

/** @throws StoreUnusable if the two connections do not keep their sessions. */
export async function refuseSharedSessions(one: Connection, other: Connection): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    const mark = randomUUID()
    const isMarked = async (connection: Connection, before = [BEGIN]): Promise<boolean> => {
      const { results, failure } = await connection.send([...before, MARKED])
      if (!failure) return results.at(-1)?.rows[0]?.mark === mark
      if (SHARED.has(failure.code)) throw shared()
      if (isUnanswered(failure.error)) throw tooFewSessions()
      throw failure.error
    }
    const { failure } = await one.send([{ text: MARK, values: [mark] }])
    if (failure) throw SHARED.has(failure.code) ? shared() : failure.error
    // In its transaction, the other connection keeps the session that it may have been given of the first.
    if (await isMarked(other)) throw shared()
    if (!(await isMarked(one, []))) throw shared()
    await other.send([ROLLBACK])
    // Of two sessions that are lent in turn, each connection came upon the same one until here.
    if (await isMarked(other, [])) throw shared()
  }
}

const shared = (): StoreUnusable =>
  new StoreUnusable(
    'A pooler in front of PostgreSQL gives each transaction another session. ' +
      'Mayfly needs sessions of its own: set pool_mode = session, or connect to the server itself.',
  )

/**
 * Opens all sessions that a process may need, and ends them again: a pooler lets its clients connect, and then lets
 * those wait that it has no session for. Other clients of the pooler count, as they will later.
 * @throws StoreUnusable if they did not all come.
 */
export async function refuseTooFewSessions(url: string, wanted: number): Promise<void> {
  const asked = Array.from({ length: wanted }, () => connect(settingsOf(url)))
  const opened = (await Promise.allSettled(asked)).filter((one) => one.status === 'fulfilled')
  const connections = opened.map(({ value }) => value)
  const answers = await Promise.all(connections.map((one) => one.send([ONE], SESSIONS_WITHIN_MS)))
  await Promise.all(connections.filter((one) => one.isOpen()).map((one) => one.end()))
  const came = answers.filter(({ failure }) => failure === null).length
  if (came < wanted) throw tooFewSessions({ wanted, came })
}

export const tooFewSessions = (found?: { wanted: number; came: number }): StoreUnusable =>
  new StoreUnusable(
    found === undefined
      ? 'The pooler in front of PostgreSQL gives out too few sessions: not even two came. Raise its default_pool_size.'
      : `The pooler in front of PostgreSQL gives out too few sessions: this instance needs ${found.wanted} at once, and ` +
          `${found.came} came. Raise its default_pool_size to ${found.wanted} for each instance and one to spare, or lower \`pool\` in MAYFLY_DATABASE_URL.`,
  )
