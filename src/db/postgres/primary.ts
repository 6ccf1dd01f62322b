/**
 * Finds the primary, by one address that moves or among several servers, and never goes back to a server that
 * another has taken over from: its commits would be lost, and its rows are old.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { StoreAway } from '../db.ts'
import { placeOf, serverUrls } from '../server-urls.ts'
import { isAway, isUnanswered, whyLost } from './errors.ts'
import { refuseSharedSessions, tooFewSessions } from './pooler.ts'
import { openSession, type Session } from './session.ts'

/** Once one server has said that it is the primary, the others have this long to say that they are. */
const OTHERS_WITHIN_MS = 1_000
/** A pooler may be set otherwise when it is restarted. */
const VERIFIED_FOR_MS = 1_000

export type Primary = {
  /** A session on the primary. @throws StoreAway when no server is the primary, else what `connect` throws. */
  connect(): Promise<Session>
  /** The URL of the server that was the primary when it was last looked for, or of the first one. */
  lastUrl(): string
  /** Calls `listener` whenever another server has taken over. Returns a function that stops. */
  onMoved(listener: () => void): () => void
}

const primaries = new Map<string, Primary>()

/** All that use one URL in this process learn at once that another server has taken over. */
export function primaryOf(url: string): Primary {
  const known = primaries.get(url) ?? createPrimary(url)
  primaries.set(url, known)
  return known
}

function createPrimary(url: string): Primary {
  const urls = serverUrls(url)
  let newest: Session['history'] = null
  let lastUrl = urls[0]
  const sessions = new Set<Session>()
  const listeners = new Set<() => void>()
  let isLooking = false
  let verified = { at: Number.NEGATIVE_INFINITY, done: Promise.resolve() }

  const isOutdated = ({ history }: Session): boolean =>
    history !== null &&
    newest !== null &&
    history.cluster === newest.cluster &&
    history.timeline < newest.timeline

  function note(session: Found): void {
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

  async function connect(): Promise<Found> {
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
    connect()
      .then((session) => session.end())
      .catch(() => undefined)
      .finally(() => {
        isLooking = false
      })
  }

  return {
    connect,
    lastUrl: () => lastUrl,
    onMoved(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

type Found = Session & { url: string }
type Missed = { url: string; error: unknown }

/** A session on the primary. If several servers say that they are, on the one that was promoted last. */
async function openNewest(
  urls: readonly [string, ...string[]],
  onOverdue?: () => void,
): Promise<Found> {
  const open = async (url: string): Promise<Found> =>
    Object.assign(await openSession(url, onOverdue), { url })
  if (urls.length === 1) return open(urls[0])
  const found: Found[] = []
  const missed: Missed[] = []
  let isChosen = false
  const first = Promise.withResolvers<void>()
  const asked = urls.map(async (url) => {
    try {
      const session = await open(url)
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
