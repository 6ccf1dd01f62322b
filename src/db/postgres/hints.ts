/**
 * Hints between instances, by LISTEN and NOTIFY on one connection of their own. A NOTIFY takes a
 * lock on the whole database when it commits, so it is never part of a unit. Changed topics are
 * collected for a moment and sent together, and only those that another instance listens to.
 */
import { randomBytes } from 'node:crypto'
import { Client } from 'pg'
import { messageOf } from '../../lib/errors.ts'
import { createHints, type Hints } from '../hints.ts'
import {
  type Interest,
  interestIn,
  interestText,
  isInterested,
  type Message,
  noInterest,
  payloads,
  readInterest,
  readMessage,
  topicHash,
} from './hint-message.ts'
import { primaryOf } from './primary.ts'

const CHANNEL = 'mayfly_hints'
/** Changes within this time are sent together. A reader hardly notices the delay. */
const COLLECT_MS = 5
/** With more topics than this at once, one message wakes every listener. */
const MAX_TOPICS = 4_000
/** How often an instance repeats what it listens to. Without listeners, this only tests the connection. */
const REPEAT_MS = 10_000
/** An instance without a message for this long is gone. */
const FORGET_MS = 35_000
/** Instances remembered at once. Beyond this, every topic is sent. */
const MAX_INSTANCES = 2_000
/** A new listener looks again after this: earlier changes were not announced to it, but are stored. */
const LOOK_AGAIN_MS = 250
const CONNECT_MS = 5_000
const QUERY_MS = 5_000
const RECONNECT_FIRST_MS = 100
const RECONNECT_MAX_MS = 10_000

export type HintsReport = {
  /** The connection is lost; called once until it is back. Meanwhile listeners poll. */
  onLost(reason: string): void
  onBack(): void
}

/** Resolves once it listens, or after the first failure: missing hints never stop a start. */
export async function openPostgresHints(url: string, report: HintsReport): Promise<Hints> {
  const self = randomBytes(9).toString('base64url')
  const local = createHints()
  const primary = primaryOf(url)
  /** The interest of each other instance, and until when it is valid. */
  const others = new Map<string, { interest: Interest; until: number }>()
  /** Whether some other instance listens to anything. */
  let isWatched = false
  /** The connection in use or being opened. Events of an older one are ignored. */
  let current: Client | null = null
  let client: Client | null = null
  let isClosed = false
  let isLost = false
  let retryMs = RECONNECT_FIRST_MS
  let reconnecting: NodeJS.Timeout | null = null

  /** Topics to send with the next flush. */
  const queued = new Set<string>()
  let urgent: Pick<Message, 'all' | 'ask'> = {}
  let isInterestDue = false
  let flushing: NodeJS.Timeout | null = null
  let isSending = false
  /** Topics with a listener here that the other instances do not know of yet. */
  let unannounced = new Set<string>()
  let announced = noInterest()

  const repeating = setInterval(() => {
    forgetSilent()
    announce()
  }, REPEAT_MS)
  repeating.unref()

  function announce(more: Pick<Message, 'all' | 'ask'> = {}): void {
    urgent = { ...urgent, ...more }
    isInterestDue = true
    flushSoon()
  }

  function flushSoon(): void {
    if (flushing !== null || isSending || client === null || isClosed) return
    flushing = setTimeout(() => {
      flushing = null
      void flush()
    }, COLLECT_MS)
  }

  async function flush(): Promise<void> {
    const connection = client
    if (connection === null) return
    const before = announced
    if (isInterestDue) announced = interestIn(local.topics())
    const isNews = isInterestDue && [before, announced].some((some) => some.some(Boolean))
    const message: Message = {
      from: self,
      ...urgent,
      ...(isNews ? { interest: interestText(announced) } : {}),
      ...(queued.size > MAX_TOPICS ? { all: true } : { topics: [...queued] }),
    }
    const fresh = isInterestDue ? unannounced : new Set<string>()
    if (isInterestDue) unannounced = new Set()
    queued.clear()
    urgent = {}
    isInterestDue = false
    isSending = true
    try {
      const parts = payloads(message)
      const calls = parts.map((_, i) => `pg_notify($1, $${i + 2})`)
      if (parts.length === 0) await connection.query('select 1')
      else await connection.query(`select ${calls.join(', ')}`, [CHANNEL, ...parts])
      if (fresh.size > 0) lookAgain(fresh)
    } catch {
      // The connection is closed; a new one begins with a message that covers what was lost.
      void connection.end().catch(() => undefined)
      lost(connection, 'a hint could not be sent')
    } finally {
      isSending = false
    }
    if (queued.size > 0 || isInterestDue) flushSoon()
  }

  function lookAgain(topics: Set<string>): void {
    const timer = setTimeout(() => {
      for (const topic of topics) local.notify(topic)
    }, LOOK_AGAIN_MS)
    timer.unref()
  }

  function hear(payload: string | undefined): void {
    const message = readMessage(payload ?? '')
    if (!message || message.from === self) return
    if (message.interest !== undefined) remember(message.from, readInterest(message.interest))
    if (message.ask) announce()
    if (message.all) local.notifyAll()
    for (const topic of message.topics ?? []) local.notify(topic)
  }

  function remember(from: string, interest: Interest): void {
    if (others.size >= MAX_INSTANCES && !others.has(from)) forgetSilent()
    if (interest.some((byte) => byte !== 0)) {
      others.set(from, { interest, until: Date.now() + FORGET_MS })
    } else others.delete(from)
    isWatched = others.size > 0
  }

  function forgetSilent(): void {
    for (const [from, { until }] of others) if (until < Date.now()) others.delete(from)
    isWatched = others.size > 0
  }

  function isListenedTo(topic: string): boolean {
    if (others.size >= MAX_INSTANCES) return true
    for (const { interest } of others.values()) if (isInterested(interest, topic)) return true
    return false
  }

  function lost(connection: Client, reason: string): void {
    if (current !== connection) return
    current = null
    client = null
    if (isClosed) return
    if (!isLost) report.onLost(reason)
    isLost = true
    reconnecting = setTimeout(
      () => {
        reconnecting = null
        void reconnect()
      },
      retryMs * (0.5 + Math.random() / 2),
    )
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
    if (isLost) {
      isLost = false
      report.onBack()
      // Hints were lost in both directions: the others look again at once, and our listeners when it has gone out.
      unannounced = new Set(local.topics())
      announce({ ask: true, all: true })
    } else announce({ ask: true })
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
      if (!isWatched && local.isIdle()) return
      const short = topicHash(topic)
      local.notify(short)
      if (!isWatched || !isListenedTo(short) || client === null) return
      if (queued.size <= MAX_TOPICS) queued.add(short)
      flushSoon()
    },
    listen(topic, onHint) {
      const short = topicHash(topic)
      const stop = local.listen(short, onHint)
      if (stop && !isInterested(announced, short)) {
        unannounced.add(short)
        announce()
      }
      return stop
    },
    async close() {
      isClosed = true
      stopFollowing()
      clearInterval(repeating)
      if (reconnecting !== null) clearTimeout(reconnecting)
      if (flushing !== null) clearTimeout(flushing)
      const connection = current
      current = null
      client = null
      await connection?.end().catch(() => undefined)
      await local.close()
    },
  }
}
