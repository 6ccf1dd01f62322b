/**
 * Sessions on the primary, which is found by one address that moves or among several servers. None is ever on a server
 * that another has taken over from: its commits would be lost, and its rows are old.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { StoreAway, StoreError } from '../db.ts'
import { placeOf, serverUrls } from '../server-urls.ts'
import { type Connection, connect, type PipelineAnswer, settingsOf } from './connection.ts'
import { isAway, isUnanswered, storeError, whyLost } from './errors.ts'
import { refuseSharedSessions, tooFewSessions } from './pooler.ts'

/** A connection with the settings of the store, to a server that takes writes. */
export type Session = Connection & {
  url: string
  /**
   * The history that the server writes. A standby that is promoted begins a new timeline, so of two servers of
   * one cluster the one with the higher number took over from the other. Null if the server does not tell.
   */
  history: { cluster: string; timeline: number } | null
  /** Whether the server that answers is not the one that the connection was made to. */
  isPooled: boolean
}

/** Holds one session, and opens another when that one is lost. */
export type Slot = ReturnType<Primary['slot']>

export type Primary = ReturnType<typeof createPrimary>

/** Once one server has said that it is the primary, the others have this long to say that they are. */
const OTHERS_WITHIN_MS = 1_000
/** A pooler may be set otherwise when it is restarted. */
const VERIFIED_FOR_MS = 1_000
/** How long the units under way wait for a server that restarts. */
const RECONNECT_WITHIN_MS = 3_000
const RECONNECT_EVERY_MS = 100
const STATEMENT_TIMEOUT_MS = 15_000
/** Another instance's commit holds a row lock briefly; a person in psql may hold it for long. */
const LOCK_TIMEOUT_MS = 5_000
/**
 * A process that stands still between its statements and their commit must not keep its locks. Shorter than the lock
 * timeout, so that the others wait for it and do not fail.
 */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 3_000
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

const primaries = new Map<string, Primary>()

/** All that use one URL in this process learn at once that another server has taken over. */
export function primaryOf(url: string): Primary {
  const known = primaries.get(url) ?? createPrimary(url)
  primaries.set(url, known)
  return known
}

function createPrimary(url: string) {
  const urls = serverUrls(url)
  let newest: Session['history'] = null
  let lastUrl = urls[0]
  const sessions = new Set<Session>()
  const listeners = new Set<() => void>()
  let isLooking = false
  /** After one slot has waited in vain, the others fail at once until a connection succeeds. */
  let isGone = false
  let verified = { at: Number.NEGATIVE_INFINITY, done: Promise.resolve() }

  const isOutdated = ({ history }: Session): boolean =>
    history !== null &&
    newest !== null &&
    history.cluster === newest.cluster &&
    history.timeline < newest.timeline

  function note(session: Session): void {
    const { url, history } = session
    const isMoved = url !== lastUrl || (newest !== null && isOther(history, newest))
    sessions.add(session)
    lastUrl = url
    newest = history ?? newest
    for (const known of sessions) {
      // Also while it waits for an answer: the server may never give it.
      if (isOutdated(known)) known.drop()
      if (!known.isOpen()) sessions.delete(known)
    }
    if (isMoved) for (const listener of listeners) listener()
  }

  /** @throws StoreAway when no server is the primary, else what `connect` throws. */
  async function open(): Promise<Session> {
    const session = await openNewest(urls, onOverdue)
    if (!isOutdated(session)) {
      await verify(session)
      note(session)
      return session
    }
    session.drop()
    const { servers } = placeOf(session.url)
    throw new StoreAway(`another server has taken over from PostgreSQL at ${servers}`)
  }

  /** Connections that are opened together are verified by one of them: a pooler has no more to give than it needs. */
  async function verify(session: Session): Promise<void> {
    if (!session.isPooled) return
    try {
      const now = performance.now()
      if (now - verified.at > VERIFIED_FOR_MS)
        verified = { at: now, done: verifyWithAnother(session) }
      await verified.done
    } catch (error) {
      session.drop()
      throw error
    }
  }

  async function verifyWithAnother(session: Session): Promise<void> {
    const other = await openNewest(urls).catch((error: unknown) => {
      throw isUnanswered(error) ? tooFewSessions() : error
    })
    try {
      await refuseSharedSessions(session, other)
    } finally {
      other.drop()
    }
  }

  /** A server that stands still may have been replaced, which its connections do not tell. */
  function onOverdue(): void {
    if (isLooking) return
    isLooking = true
    open()
      .then((session) => session.end())
      .catch(() => undefined)
      .finally(() => {
        isLooking = false
      })
  }

  async function reconnect(): Promise<Session> {
    const deadline = Date.now() + (isGone ? 0 : RECONNECT_WITHIN_MS)
    for (;;) {
      try {
        const session = await open()
        isGone = false
        return session
      } catch (error) {
        if (Date.now() >= deadline) {
          isGone = true
          throw error instanceof StoreError ? error : storeError(error)
        }
        await wait(RECONNECT_EVERY_MS)
      }
    }
  }

  return {
    open,
    /** The URL of the server that was the primary when it was last looked for, or of the first one. */
    lastUrl: () => lastUrl,
    /** Calls `listener` whenever another server has taken over. Returns a function that stops. */
    onMoved(listener: () => void): () => void {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    slot() {
      let current: Session | null = null
      return {
        /** The slot's session, or a new one. @throws StoreError when the server cannot be reached. */
        async connection(): Promise<Connection> {
          if (!current?.isOpen()) current = await reconnect()
          return current
        },
        /** The next use opens a new one. */
        drop(): void {
          current?.drop()
          current = null
        },
        async end(): Promise<void> {
          const last = current
          current = null
          if (last?.isOpen()) await last.end()
        },
      }
    },
  }
}

/** @throws StoreAway when the server is a standby, else what `connect` throws. */
async function openSession(url: string, onOverdue?: () => void): Promise<Session> {
  const connection = await connect(settingsOf(url), onOverdue)
  try {
    return Object.assign(connection, { url }, await begin(connection, url))
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

type Missed = { url: string; error: unknown }

/** A session on the primary. If several servers say that they are, on the one that was promoted last. */
async function openNewest(
  urls: readonly [string, ...string[]],
  onOverdue?: () => void,
): Promise<Session> {
  if (urls.length === 1) return openSession(urls[0], onOverdue)
  const found: Session[] = []
  const missed: Missed[] = []
  let isChosen = false
  const first = Promise.withResolvers<void>()
  const asked = urls.map(async (url) => {
    try {
      const session = await openSession(url, onOverdue)
      if (isChosen) session.drop()
      else found.push(session)
      first.resolve()
    } catch (error) {
      missed.push({ url, error })
    }
  })
  await Promise.race([Promise.all(asked), first.promise.then(() => wait(OTHERS_WITHIN_MS))])
  isChosen = true
  const [best, ...others] = found.sort((a, b) => timelineOf(b) - timelineOf(a))
  for (const other of others) other.drop()
  if (best === undefined) throw whyNone(missed)
  return best
}

function isOther(one: Session['history'], other: Session['history']): boolean {
  return one?.cluster !== other?.cluster || one?.timeline !== other?.timeline
}

const timelineOf = ({ history }: Session): number => history?.timeline ?? 0

/** What waiting does not mend, such as a wrong password, comes first. */
function whyNone(missed: Missed[]): unknown {
  const forGood = missed.find(({ error }) => !isAway(error))
  if (forGood) return forGood.error
  const reasons = missed.map(({ url, error }) => {
    if (error instanceof StoreAway) return error.message
    return `${placeOf(url).servers}: ${whyLost(error)}`
  })
  return new StoreAway(`no server is the primary (${reasons.join('; ')})`)
}
