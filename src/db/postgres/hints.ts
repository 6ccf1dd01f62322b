/**
 * Hints between instances, by LISTEN and NOTIFY on one connection of their own. A NOTIFY takes a
 * lock of the whole database when it commits, so none is ever part of a unit: what changed is
 * collected for a moment and sent together, and only what somebody elsewhere listens to.
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

const CHANNEL = 'mayfly_hints'
/** What changes within this time goes out together: a reader hardly notices it. */
const COLLECT_MS = 5
/** More topics than this at once, and everybody is told to look at everything. */
const TOPICS_MOST = 4_000
/** What is listened to is said again this often. With nothing to say, the line is tried alone. */
const REPEAT_MS = 10_000
/** An instance that has said nothing for this long is gone. */
const FORGET_MS = 35_000
/** Instances remembered at once; beyond, all are told everything. */
const INSTANCES_MOST = 2_000
/** A new listener looks again after this: what was told before others knew of it is in the store. */
const LOOK_AGAIN_MS = 250
const CONNECT_MS = 5_000
const QUERY_MS = 5_000
const RECONNECT_FIRST_MS = 100
const RECONNECT_MOST_MS = 10_000

export type HintsReport = {
  /** The line is lost, told once until it is back. Meanwhile listeners look by themselves. */
  onLost(reason: string): void
  onBack(): void
}

/** Comes back once it listens, or has failed to for the first time: hints never stop a start. */
export async function openPostgresHints(url: string, report: HintsReport): Promise<Hints> {
  const self = randomBytes(9).toString('base64url')
  const local = createHints()
  /** What each other instance listens to, and until when that holds. */
  const others = new Map<string, { interest: Interest; until: number }>()
  /** Whether some other instance listens to anything. */
  let isWatched = false
  /** The line in use or being made; what an older one still says does not count. */
  let current: Client | null = null
  let client: Client | null = null
  let isClosed = false
  let isLost = false
  let retryMs = RECONNECT_FIRST_MS
  let reconnecting: NodeJS.Timeout | null = null

  /** To be sent with the next flush. */
  const queued = new Set<string>()
  let urgent: Pick<Message, 'all' | 'ask'> = {}
  let isInterestDue = false
  let flushing: NodeJS.Timeout | null = null
  let isSending = false
  /** Listened to by somebody here, and not told to the others yet. */
  let unannounced = new Set<string>()
  let announced = noInterest()

  const repeating = setInterval(() => {
    forgetTheSilent()
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
    const line = client
    if (line === null) return
    const before = announced
    if (isInterestDue) announced = interestIn(local.topics())
    const isNews = isInterestDue && [before, announced].some((some) => some.some(Boolean))
    const message: Message = {
      from: self,
      ...urgent,
      ...(isNews ? { interest: interestText(announced) } : {}),
      ...(queued.size > TOPICS_MOST ? { all: true } : { topics: [...queued] }),
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
      if (parts.length === 0) await line.query('select 1')
      else await line.query(`select ${calls.join(', ')}`, [CHANNEL, ...parts])
      if (fresh.size > 0) lookAgain(fresh)
    } catch {
      // A line that does not answer is no line; what was to be told is covered by the next one.
      void line.end().catch(() => undefined)
      lost(line, 'a hint could not be sent')
    } finally {
      isSending = false
    }
    if (queued.size > 0 || isInterestDue) flushSoon()
  }

  function lookAgain(topics: Set<string>): void {
    const timer = setTimeout(() => {
      for (const topic of topics) local.tell(topic)
    }, LOOK_AGAIN_MS)
    timer.unref()
  }

  function hear(payload: string | undefined): void {
    const message = readMessage(payload ?? '')
    if (!message || message.from === self) return
    if (message.interest !== undefined) remember(message.from, readInterest(message.interest))
    if (message.ask) announce()
    if (message.all) local.tellAll()
    for (const topic of message.topics ?? []) local.tell(topic)
  }

  function remember(from: string, interest: Interest): void {
    if (others.size >= INSTANCES_MOST && !others.has(from)) forgetTheSilent()
    if (interest.some((byte) => byte !== 0)) {
      others.set(from, { interest, until: Date.now() + FORGET_MS })
    } else others.delete(from)
    isWatched = others.size > 0
  }

  function forgetTheSilent(): void {
    for (const [from, { until }] of others) if (until < Date.now()) others.delete(from)
    isWatched = others.size > 0
  }

  function isWanted(topic: string): boolean {
    if (others.size >= INSTANCES_MOST) return true
    for (const { interest } of others.values()) if (isInterested(interest, topic)) return true
    return false
  }

  function lost(line: Client, reason: string): void {
    if (current !== line) return
    current = null
    client = null
    if (isClosed) return
    if (!isLost) report.onLost(reason)
    isLost = true
    reconnecting = setTimeout(
      () => {
        reconnecting = null
        void connect()
      },
      retryMs * (0.5 + Math.random() / 2),
    )
    retryMs = Math.min(retryMs * 2, RECONNECT_MOST_MS)
  }

  async function connect(): Promise<void> {
    const line = new Client({
      connectionString: url,
      application_name: 'mayfly hints',
      connectionTimeoutMillis: CONNECT_MS,
      query_timeout: QUERY_MS,
      keepAlive: true,
      // A hint is worth no flush to disk.
      options: '-c synchronous_commit=off',
    })
    current = line
    line.on('notification', ({ payload }) => hear(payload))
    line.on('error', (error) => lost(line, error.message))
    line.on('end', () => lost(line, 'the connection ended'))
    try {
      await line.connect()
      await line.query(`listen ${CHANNEL}`)
    } catch (error) {
      void line.end().catch(() => undefined)
      lost(line, messageOf(error))
      return
    }
    if (isClosed || current !== line) return void line.end().catch(() => undefined)
    client = line
    retryMs = RECONNECT_FIRST_MS
    if (isLost) {
      isLost = false
      report.onBack()
      // Something may have been missed here, and what happened here may not have been told.
      unannounced = new Set(local.topics())
      announce({ ask: true, all: true })
      local.tellAll()
    } else announce({ ask: true })
  }

  await connect()

  return {
    tell(topic) {
      // The usual case by far: nobody waits anywhere.
      if (!isWatched && local.isIdle()) return
      const short = topicHash(topic)
      local.tell(short)
      if (!isWatched || !isWanted(short) || client === null) return
      if (queued.size <= TOPICS_MOST) queued.add(short)
      flushSoon()
    },
    listen(topic, heard) {
      const short = topicHash(topic)
      const stop = local.listen(short, heard)
      if (stop && !isInterested(announced, short)) {
        unannounced.add(short)
        announce()
      }
      return stop
    },
    async close() {
      isClosed = true
      clearInterval(repeating)
      if (reconnecting !== null) clearTimeout(reconnecting)
      if (flushing !== null) clearTimeout(flushing)
      const line = current
      current = null
      client = null
      await line?.end().catch(() => undefined)
      await local.close()
    },
  }
}
