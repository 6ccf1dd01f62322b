/**
 * Hints between instances, by LISTEN and NOTIFY on one connection of their own. A NOTIFY takes a lock on the whole
 * database when it commits, so it is never part of a unit: changed topics are collected for a moment and sent
 * together, and only while there is another instance. Topics are hashed, so that no ids get into the database's log.
 */
import { hash, randomBytes } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { Client } from 'pg'
import { messageOf } from '../../lib/errors.ts'
import { createHints, type Hints } from '../hints.ts'
import { primaryOf } from './sessions.ts'

const CHANNEL = 'mayfly_hints'
/** Changes within this time are sent together. A reader hardly notices the delay. */
const COLLECT_MS = 10
/** PostgreSQL accepts payloads below 8000 bytes. Hints of more topics than this are lost. */
const MAX_TOPICS = 600
/** Two topics of one hash cost a needless look. */
const HASH_CHARACTERS = 10
const CONNECT_MS = 5_000
const QUERY_MS = 5_000
const RECONNECT_FIRST_MS = 100
const RECONNECT_MAX_MS = 10_000

/** Resolves once it listens, or after the first failure: missing hints never stop a start. */
export async function openPostgresHints(
  url: string,
  {
    hasOthers,
    onLost,
    onBack,
  }: {
    /** Whether there are other instances to tell. */
    hasOthers(): boolean
    /** The connection is lost; called once until it is back. Meanwhile listeners poll. */
    onLost(reason: string): void
    onBack(): void
  },
): Promise<Hints> {
  const self = randomBytes(9).toString('base64url')
  const local = createHints()
  const primary = primaryOf(url)
  /** The connection that listens or is being opened. Events of an older one are ignored. */
  let client: Client | null = null
  let isClosed = false
  let isLost = false
  let retryMs = RECONNECT_FIRST_MS
  let reconnecting: NodeJS.Timeout | undefined
  /** Topics to send with the next message. */
  const queued = new Set<string>()
  let isSending = false

  async function send(connection: Client): Promise<void> {
    isSending = true
    while (queued.size > 0 && client === connection) {
      await wait(COLLECT_MS, undefined, { ref: false })
      const message = [self, ...queued].join(' ')
      queued.clear()
      await connection
        .query('select pg_notify($1, $2)', [CHANNEL, message])
        .catch(() => lost(connection, 'a hint could not be sent'))
    }
    isSending = false
  }

  function hear(payload = ''): void {
    const [from, ...topics] = payload.split(' ')
    if (from !== self) for (const topic of topics) local.notify(topic)
  }

  function lost(connection: Client, reason: string): void {
    if (client !== connection) return
    client = null
    void connection.end().catch(() => undefined)
    if (isClosed) return
    if (!isLost) onLost(reason)
    isLost = true
    reconnecting = setTimeout(() => void connect(), retryMs * (0.5 + Math.random() / 2))
    retryMs = Math.min(retryMs * 2, RECONNECT_MAX_MS)
  }

  async function connect(): Promise<void> {
    const connection = new Client({
      connectionString: primary.lastUrl(),
      application_name: 'mayfly hints',
      connectionTimeoutMillis: CONNECT_MS,
      query_timeout: QUERY_MS,
      keepAlive: true,
    })
    client = connection
    connection.on('notification', ({ payload }) => hear(payload))
    connection.on('error', (error) => lost(connection, error.message))
    connection.on('end', () => lost(connection, 'the connection ended'))
    try {
      await connection.connect()
      // A hint is not worth a flush to disk.
      await connection.query('set synchronous_commit = off')
      await connection.query(`listen ${CHANNEL}`)
    } catch (error) {
      return lost(connection, messageOf(error))
    }
    if (client !== connection) return
    retryMs = RECONNECT_FIRST_MS
    if (isLost) onBack()
    isLost = false
  }

  const stopFollowing = primary.onMoved(() => {
    if (client !== null) lost(client, 'another server has taken over')
  })
  await connect()

  return {
    notify(topic) {
      const connection = hasOthers() ? client : null
      // By far the most frequent case: nobody listens anywhere.
      if (connection === null && local.isIdle()) return
      const short = topicHash(topic)
      local.notify(short)
      if (connection === null) return
      if (queued.size < MAX_TOPICS) queued.add(short)
      if (!isSending) void send(connection)
    },
    listen: (topic, onHint) => local.listen(topicHash(topic), onHint),
    async close() {
      isClosed = true
      stopFollowing()
      clearTimeout(reconnecting)
      const connection = client
      client = null
      await connection?.end().catch(() => undefined)
      await local.close()
    },
  }
}

/** The topic as others see it. */
export const topicHash = (topic: string): string =>
  hash('sha256', `mayfly/hint/${topic}`, 'base64url').slice(0, HASH_CHARACTERS)
