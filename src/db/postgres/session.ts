/**
 * A connection with the settings of the store, to a server that takes writes. The settings are given by a
 * statement, because a pooler refuses or forgets those that are sent before the first one.
 */
import { StoreAway } from '../db.ts'
import { placeOf } from '../server-urls.ts'
import { type Connection, connect, type PipelineAnswer, settingsOf } from './connection.ts'

export type Session = Connection & {
  /**
   * The history that the server writes. A standby that is promoted begins a new timeline, so of two servers of
   * one cluster the one with the higher number took over from the other. Null if the server does not tell.
   */
  history: { cluster: string; timeline: number } | null
  /** Whether the server that answers is not the one that the connection was made to. */
  isPooled: boolean
}

const STATEMENT_TIMEOUT_MS = 15_000
/** Another instance's commit holds a row lock briefly; a person in psql may hold it for long. */
const LOCK_TIMEOUT_MS = 5_000
/** A process that died in a transaction must not keep its locks. */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000
/**
 * PostgreSQL keeps the plan of a prepared statement. A plan made while its table had one page scans the
 * table, and under load that scan reads past thousands of dead rows. Every frequent query has an index.
 * Without an index, PostgreSQL still scans the table.
 */
const SCAN_WHOLE_TABLES = 'off'

const SETTINGS: Record<string, string> = {
  statement_timeout: String(STATEMENT_TIMEOUT_MS),
  lock_timeout: String(LOCK_TIMEOUT_MS),
  idle_in_transaction_session_timeout: String(IDLE_IN_TRANSACTION_TIMEOUT_MS),
  bytea_output: 'hex',
  enable_seqscan: SCAN_WHOLE_TABLES,
}

/** Functions that any user may call. A service that only speaks like PostgreSQL may lack them. */
const HISTORY = `select cast(system_identifier as text) as cluster,
  substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline from pg_control_system()`

/** @throws StoreAway when the server is a standby, else what `connect` throws. */
export async function openSession(url: string, onOverdue?: () => void): Promise<Session> {
  const connection = await connect(settingsOf(url), onOverdue)
  try {
    return Object.assign(connection, await begin(connection, url))
  } catch (error) {
    connection.drop()
    throw error
  }
}

async function begin(
  connection: Connection,
  url: string,
): Promise<Pick<Session, 'history' | 'isPooled'>> {
  const settings = Object.entries(SETTINGS).filter(([name]) => !isInUrl(url, name))
  const calls = settings.map((_, i) => `set_config($${2 * i + 1}, $${2 * i + 2}, false)`)
  const { results, failure } = await connection.send([
    { text: 'select pg_is_in_recovery() as is_standby, pg_backend_pid() as pid', values: [] },
    { text: `select ${[...calls, '1'].join(', ')}`, values: settings.flat() },
  ])
  const { is_standby: isStandby, pid } = results[0]?.rows[0] ?? {}
  // A standby may have stale rows, so it is not read either.
  if (isStandby === 1) throw new StoreAway(`PostgreSQL at ${placeOf(url).servers} is a standby`)
  if (failure) throw failure.error
  const told = await connection.send([{ text: HISTORY, values: [] }])
  if (told.failure?.isLost) throw told.failure.error
  return { history: historyIn(told), isPooled: pid !== connection.announcedPid }
}

function historyIn({ results, failure }: PipelineAnswer): Session['history'] {
  const { cluster, timeline } = results[0]?.rows[0] ?? {}
  if (failure || !cluster || !timeline) return null
  return { cluster: String(cluster), timeline: Number.parseInt(String(timeline), 16) }
}

/** What the operator wrote into the URL has precedence. */
function isInUrl(url: string, name: string): boolean {
  const { searchParams } = new URL(url)
  return searchParams.has(name) || (searchParams.get('options') ?? '').includes(name)
}
