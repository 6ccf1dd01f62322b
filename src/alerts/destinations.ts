/** The destinations of an owner: set, tested, listed. Nothing but tests is sent before a test was answered. */
import { randomBytes } from 'node:crypto'
import { attempt, type Db, type Statement } from '../db/db.ts'
import type { AlertContent, AlertFormat, UrlFormat } from '../lib/alert-formats.ts'
import type { Clock } from '../lib/clock.ts'
import { newWebhookSecret } from '../protocol/webhook-signing.ts'
import { targetOf } from './delivery.ts'
import {
  type Attempt,
  inboxText,
  type ProvenInbox,
  readInbox,
  type Sealed,
  type Send,
  type Target,
} from './send.ts'
import {
  type AlertStore,
  activate,
  type DestinationRow,
  type DestinationState,
  dropDestination,
  dropOwners,
  insertDestination,
  keepDestination,
  type Outcome,
} from './store.ts'

/** How many destinations an owner has at most. */
const MAX_DESTINATIONS = 3
/** What the owner is shown of the past. */
const TOLD_MS = 24 * 60 * 60 * 1000
const MAX_TOLD = 100
/** Two requests of an owner at once: the loser looks again this often. */
const TRIES = 3

/**
 * A destination that is asked for. The URL was checked, and the inbox admits the owner of the token, or it is set already.
 */
export type Wanted = ({ format: UrlFormat; url: URL } | ({ format: 'inbox' } & ProvenInbox)) & {
  /** It gets what an alert has for its owner alone, too. */
  isPrivate: boolean
}

export type Destination = {
  id: string
  format: AlertFormat
  /** The host of the URL, or the id of the inbox. */
  host: string
  state: DestinationState
  isPrivate: boolean
}

/** A destination that was just set, with its secret if it is new. */
export type SetDestination = Destination & {
  secret: string | null
  /** The outcome of the test; null if none was needed. */
  test: Outcome | 'no echo' | null
}

export function createDestinations(deps: {
  db: Db
  store: AlertStore
  sealed: Sealed
  send: Send
  clock: Clock
}) {
  const { db, store, sealed, send, clock } = deps

  /** Finds a row for each wanted destination. A destination that wants no more is as good as none. */
  async function matched(ownerId: string, wanted: readonly Wanted[]) {
    const rows = await store.ofOwner(ownerId)
    const left = new Map(
      rows
        .filter(({ state }) => state !== 'gone')
        .map((row) => [row, sealed.open(row.sealed_target, row.destination_id)]),
    )
    const pairs = wanted.map((one) => {
      const [row = null] =
        [...left].find(([some, plain]) => some.format === one.format && plain === plainOf(one)) ??
        []
      if (row) left.delete(row)
      return { one, row }
    })
    return { rows, pairs }
  }

  function wantedOf(row: DestinationRow): Wanted | null {
    const { format, sealed_target, destination_id } = row
    const plain = sealed.open(sealed_target, destination_id)
    if (plain === null) return null
    const isPrivate = row.is_private === 1
    return format === 'inbox'
      ? { format, ...readInbox(plain), isPrivate }
      : { format, url: new URL(plain), isPrivate }
  }

  /** The statements that make the owner's rows those of `wanted`, and what they are then. */
  async function plan(ownerId: string, wanted: readonly Wanted[]) {
    const { rows, pairs } = await matched(ownerId, wanted)
    const kept = new Set(pairs.map(({ row }) => row))
    const taken = new Set(pairs.flatMap(({ row }) => row?.place ?? []))
    const places = Array.from({ length: MAX_DESTINATIONS }, (_, i) => i).filter(
      (place) => !taken.has(place),
    )
    const removed = rows.filter((row) => !kept.has(row))
    const statements = removed.flatMap(({ destination_id: id }) => dropDestination(id))
    /** Of the new ones, by their ids. */
    const secrets = new Map<string, string>()
    for (const { one, row } of pairs) {
      if (row) {
        statements.push(keepDestination(row.destination_id, one.isPrivate))
        continue
      }
      const secret = newWebhookSecret()
      const id = randomBytes(16).toString('base64url')
      secrets.set(id, secret)
      statements.push(
        insertDestination({
          destination_id: id,
          owner_id: ownerId,
          place: places.shift() ?? 0,
          format: one.format,
          host: hostOf(one),
          sealed_secret: sealed.seal(secret, id),
          sealed_target: sealed.seal(plainOf(one), id),
          is_private: Number(one.isPrivate),
        }),
      )
    }
    return { statements, secrets }
  }

  /** Sends a test, and makes the destination active if it was answered. */
  async function tested(row: DestinationRow, test: AlertContent): Promise<SetDestination['test']> {
    const target = targetOf(row, sealed)
    if (!target) return 'failed'
    const outcome = await sendTest(target, test)
    if (outcome === '2xx') {
      const { owner_id: lockKey, destination_id: id } = row
      await db.write({ lockKey, statements: { activate: activate(id) } })
    }
    return outcome
  }

  async function sendTest(target: Target, test: AlertContent): Promise<Outcome | 'no echo'> {
    const nonce = randomBytes(16).toString('base64url')
    const content = { ...test, data: { ...test.data, nonce } }
    const id = newMessageId()
    const message = { id, type: 'test', occurredAt: clock.now(), content }
    const answer: Attempt = await send(target, message)
    // Any server may answer 2xx to anything. A receiver of ours shows that it reads what it gets.
    const isEcho = target.format !== 'standard' || answer.has(nonce)
    return answer.outcome === '2xx' && !isEcho ? 'no echo' : answer.outcome
  }

  /** Tests all that need it at once, and says what they are then. */
  async function testAll(
    ownerId: string,
    secrets: ReadonlyMap<string, string>,
    test: AlertContent,
  ): Promise<SetDestination[]> {
    const rows = await store.ofOwner(ownerId)
    const outcomes = await Promise.all(
      rows.map((row) => (row.state === 'untested' ? tested(row, test) : null)),
    )
    return rows.map((row, i) => {
      const outcome = outcomes[i] ?? null
      const state = outcome === '2xx' ? 'active' : row.state
      const secret = secrets.get(row.destination_id) ?? null
      return { ...shown(row), state, secret, test: outcome }
    })
  }

  return {
    /** Which of these no test has reached. */
    async untested(ownerId: string, wanted: readonly Wanted[]): Promise<Wanted[]> {
      const { pairs } = await matched(ownerId, wanted)
      return pairs.filter(({ row }) => row?.state !== 'active').map(({ one }) => one)
    },

    /**
     * Sets the owner's destinations to these. Those that were there before keep their place, their secret and what
     * waits for them.
     * @param guard must hold in the same unit, such as: the owner exists. Locks the owner first.
     * @returns null if the guard does not hold.
     */
    async set(
      ownerId: string,
      { wanted, guard, test }: { wanted: readonly Wanted[]; guard: Statement; test: AlertContent },
    ): Promise<SetDestination[] | null> {
      for (let tries = 1; ; tries++) {
        const { statements, secrets } = await plan(ownerId, wanted)
        const done = await attempt(
          db.write({ lockKey: ownerId, statements: { guard, destinations: statements } }),
        )
        if ('rows' in done) return await testAll(ownerId, secrets, test)
        if (done.refused === 'guard') return null
        if (tries === TRIES) throw new Error('the destinations of an owner keep changing')
      }
    },

    /** The owner's destination with this id, or null. */
    async find(ownerId: string, id: string): Promise<Wanted | null> {
      const row = (await store.ofOwner(ownerId)).find(({ destination_id }) => destination_id === id)
      return row ? wantedOf(row) : null
    },

    /** Forgets all destinations, and what waits for them. */
    async remove(ownerId: string): Promise<void> {
      await db.write({ lockKey: ownerId, statements: { destinations: dropOwners([ownerId]) } })
    },

    list: async (ownerId: string): Promise<Destination[]> =>
      (await store.ofOwner(ownerId)).map(shown),

    /** The owner's alerts of the last day, and those that wait; the newest first. */
    told: (ownerId: string) => store.told(ownerId, clock.now() - TOLD_MS, MAX_TOLD),
  }
}

/** The same for every attempt at a message. Receivers know a repeat by it. */
export const newMessageId = (): string => `msg_${randomBytes(16).toString('base64url')}`

const plainOf = (one: Wanted): string => (one.format === 'inbox' ? inboxText(one) : one.url.href)
const hostOf = (one: Wanted): string => (one.format === 'inbox' ? one.inboxId : one.url.host)

const shown = (row: DestinationRow): Destination => ({
  id: row.destination_id,
  format: row.format,
  host: row.host,
  state: row.state,
  isPrivate: row.is_private === 1,
})
