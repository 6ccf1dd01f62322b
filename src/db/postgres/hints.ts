/**
 * Hints between instances, by LISTEN and NOTIFY on one connection of their own. A NOTIFY takes a lock on the whole
 * database when it commits, so it is never part of a unit: changed topics are collected for a moment and sent
 * together, and only while there is another instance. Topics are hashed, so that no ids get into the database's log.
 */
import { hash, randomBytes } from 'node:crypto'
import { Client } from 'pg'
import { messageOf } from '../../lib/errors.ts'
import { createHints, type Hints } from '../hints.ts'
import { primaryOf } from './sessions.ts'

const CHANNEL = 'mayfly_hints'
/** Changes within this time are sent together. A reader hardly notices the delay. */
const COLLECT_MS = 10
/** PostgreSQL accepts payloads below 8000 bytes. With more topics than this, one message wakes every listener. */
const MAX_TOPICS = 600
/** Two topics of one hash cost a needless look. */
const HASH_CHARACTERS = 10
/** How often an instance says that it is there, which also tests its connection. */
const GREET_MS = 10_000
/** Without a message of others for this long there are none. */
const FORGET_MS = 35_000
const CONNECT_MS = 5_000
const QUERY_MS = 5_000
const RECONNECT_FIRST_MS = 100
const RECONNECT_MAX_MS = 10_000

export type HintsReport = {
  /** The connection is lost; called once until it is back. Meanwhile listeners poll. */
  onLost(reason: string): void
  onBack(): void
}

/** A payload. Without more than its sender it only says that this instance is there. */
type Message = {
  from: string
  topics?: string[]
  /** Anything may have changed. */
  all?: boolean
  /** The sender has just begun to listen: every instance greets it. */
  isNew?: boolean
}

/** Resolves once it listens, or after the first failure: missing hints never stop a start. */
export async function openPostgresHints(url: string, report: HintsReport): Promise<Hints> {
  const self = randomBytes(9).toString('base64url')
  const local = createHints()
  const primary = primaryOf(url)
  /** Until when there is another instance, by the monotonic clock. */
  let watchedUntil = Number.NEGATIVE_INFINITY
  /** The others may not have told this instance of changes yet. */
  let isUnknown = true
  /** The connection in use or being opened. Events of an older one are ignored. */
  let current: Client | null = null
  let client: Client | null = null
  let isClosed = false
  let isLost = false
  let retryMs = RECONNECT_FIRST_MS
  let reconnecting: NodeJS.Timeout | undefined

  /** Topics to send with the next message. */
  const queued = new Set<string>()
  /** What else it says; null if it need not be sent without topics. */
  let next: Omit<Message, 'from' | 'topics'> | null = null
  let sending: NodeJS.Timeout | undefined
  let isSending = false

  const greeting = setInterval(() => say({}), GREET_MS).unref()
  const isWatched = (): boolean => performance.now() < watchedUntil

  function say(more: Omit<Message, 'from' | 'topics'>): void {
    next = { ...next, ...more }
    sendSoon()
  }

  function sendSoon(): void {
    if (sending || isSending || client === null || isClosed) return
    sending = setTimeout(() => {
      sending = undefined
      void send()
    }, COLLECT_MS)
  }

  async function send(): Promise<void> {
    const connection = client
    if (connection === null) return
    const changed = queued.size > MAX_TOPICS ? { all: true } : { topics: [...queued] }
    const message: Message = { from: self, ...next, ...changed }
    queued.clear()
    next = null
    isSending = true
    try {
      await connection.query('select pg_notify($1, $2)', [CHANNEL, JSON.stringify(message)])
    } catch {
      // The connection is closed; a new one begins with a message that covers what was lost.
      void connection.end().catch(() => undefined)
      lost(connection, 'a hint could not be sent')
    } finally {
      isSending = false
    }
    if (queued.size > 0 || next) sendSoon()
  }

  function hear(payload: string | undefined): void {
    const message = readMessage(payload ?? '')
    if (!message || message.from === self) return
    watchedUntil = performance.now() + FORGET_MS
    if (message.isNew) say({})
    // From here on others tell of their changes, so the listeners look once at what came before.
    if (message.all || isUnknown) local.notifyAll()
    isUnknown = false
    for (const topic of message.topics ?? []) local.notify(topic)
  }

  function lost(connection: Client, reason: string): void {
    if (current !== connection) return
    current = null
    client = null
    if (isClosed) return
    if (!isLost) report.onLost(reason)
    isLost = true
    reconnecting = setTimeout(() => void reconnect(), retryMs * (0.5 + Math.random() / 2))
    retryMs = Math.min(retryMs * 2, RECONNECT_MAX_MS)
  }

  async function reconnect(): Promise<void> {
    const connection = new Client({
      connectionString: primary.lastUrl(),
      application_name: 'mayfly hints',
      connectionTimeoutMillis: CONNECT_MS,
      query_timeout: QUERY_MS,
      keepAlive: true,
    })
    current = connection
    connection.on('notification', ({ payload }) => hear(payload))
    connection.on('error', (error) => lost(connection, error.message))
    connection.on('end', () => lost(connection, 'the connection ended'))
    try {
      await connection.connect()
      // A hint is not worth a flush to disk.
      await connection.query('set synchronous_commit = off')
      await connection.query(`listen ${CHANNEL}`)
    } catch (error) {
      void connection.end().catch(() => undefined)
      lost(connection, messageOf(error))
      return
    }
    if (isClosed || current !== connection) return void connection.end().catch(() => undefined)
    client = connection
    retryMs = RECONNECT_FIRST_MS
    isUnknown = true
    // Hints were lost in both directions.
    say({ isNew: true, all: isLost })
    if (isLost) report.onBack()
    isLost = false
  }

  const stopFollowing = primary.onMoved(() => {
    const connection = current
    if (connection === null) return
    void connection.end().catch(() => undefined)
    lost(connection, 'another server has taken over')
  })
  await reconnect()

  return {
    notify(topic) {
      // By far the most frequent case: nobody listens anywhere.
      if (!isWatched() && local.isIdle()) return
      const short = topicHash(topic)
      local.notify(short)
      if (!isWatched() || client === null) return
      if (queued.size <= MAX_TOPICS) queued.add(short)
      sendSoon()
    },
    listen: (topic, onHint) => local.listen(topicHash(topic), onHint),
    async close() {
      isClosed = true
      stopFollowing()
      clearInterval(greeting)
      clearTimeout(reconnecting)
      clearTimeout(sending)
      const connection = current
      current = null
      client = null
      await connection?.end().catch(() => undefined)
      await local.close()
    },
  }
}

/** The topic as others see it. */
export const topicHash = (topic: string): string =>
  hash('sha256', `mayfly/hint/${topic}`, 'base64url').slice(0, HASH_CHARACTERS)

/** Null for a payload that no instance sends: every user of the database may notify. */
function readMessage(payload: string): Message | null {
  try {
    const { from, topics, all, isNew } = JSON.parse(payload) as Record<string, unknown>
    if (typeof from !== 'string') return null
    const known = Array.isArray(topics) ? topics.map(String) : []
    return { from, topics: known, all: all === true, isNew: isNew === true }
  } catch {
    return null
  }
}
