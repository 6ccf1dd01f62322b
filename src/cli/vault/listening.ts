/**
 * How far `catch listen --forward` and the tools of hosts got with each inbox, and what a receiver did not take, in the
 * vault.
 *
 * "sent" is committed just before the last byte of an event is passed to the system, and "done" when the receiver has
 * answered. So a kill never sends an event twice: the next start names an event without an answer, which was not sent
 * if the kill came between the commit and that byte.
 *
 * Of two listeners of one inbox the newer one goes on. Each writes under its own token, so the older one learns of it
 * before it sends anything more, and no lock can be left behind by a process that is gone.
 */
import { randomUUID } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { CliError } from '../exit.ts'
import { fromVault, inVault, type Place } from './vault.ts'

export type Listener = ReturnType<typeof startListening>

/** Continues where the last listener of this inbox stopped, and takes over from one that still runs. */
export function startListening(place: Place, inbox: string) {
  const listener = randomUUID()
  const before = inVault(place, (db) => {
    const row = db.prepare('select * from listening where inbox = $inbox').get({ inbox })
    db.prepare(TAKE_OVER).run({ inbox, listener })
    return row
  })
  let last = numberOf(before?.last)

  function write(sequence: number, unanswered: number | null, hasFailed = false): void {
    // Nothing may take time between the commit and the last byte.
    inVault(place, (db) => move(db, { last: sequence, unanswered, hasFailed }), { isQuick: true })
    last = sequence
  }

  function move(
    db: DatabaseSync,
    to: { last: number; unanswered: number | null; hasFailed: boolean },
  ) {
    const { last: sequence, unanswered, hasFailed } = to
    const { changes } = db.prepare(MOVE).run({ inbox, listener, last: sequence, unanswered })
    if (Number(changes) === 0) throw new CliError(OTHER_LISTENER)
    if (hasFailed) db.prepare(FAILED).run({ inbox, sequence })
  }

  return {
    /** The last sequence that must not be sent again, or null at the first start. */
    last: () => last,
    /** The event that had no answer when the listener before this one ended, or null. */
    unanswered: numberOf(before?.unanswered),
    sent: (sequence: number) => write(sequence, sequence),
    done: (sequence: number) => write(sequence, null),
    /** The receiver did not take it: remembered for `catch replay --failed`. */
    failed: (sequence: number) => write(sequence, null, true),
  }
}

const TAKE_OVER = `
  insert into listening (inbox, listener) values ($inbox, $listener)
  on conflict do update set listener = excluded.listener`

const MOVE = `
  update listening set last = $last, unanswered = $unanswered
  where inbox = $inbox and listener = $listener`

const FAILED =
  'insert into failed (inbox, sequence) values ($inbox, $sequence) on conflict do nothing'

const OTHER_LISTENER = 'Another process forwards the webhooks of this inbox now, so this one stops.'

/** Forgets how far listeners and hosts of this inbox got. */
export const forgetListening = (place: Place, inbox: string): void =>
  inVault(place, (db) => {
    db.prepare('delete from listening where inbox = $inbox').run({ inbox })
    db.prepare('delete from failed where inbox = $inbox').run({ inbox })
  })

/** The last event that the tools of a host have handed over, or 0. */
export const lastSeen = (place: Place, inbox: string): number =>
  fromVault(place, 0, (db) =>
    Number(db.prepare('select seen from listening where inbox = $inbox').get({ inbox })?.seen ?? 0),
  )

/** It only grows: of two calls at once the one that got further counts. */
export const sawUpTo = (place: Place, inbox: string, sequence: number): void =>
  inVault(place, (db) => {
    db.prepare(SEEN).run({ inbox, sequence })
  })

const SEEN = `
  insert into listening (inbox, seen) values ($inbox, $sequence)
  on conflict do update set seen = max(seen, excluded.seen)`

/** The events of this inbox that its receiver did not take, in their order. */
export const failedEvents = (place: Place, inbox: string): number[] =>
  fromVault(place, [], (db) =>
    db
      .prepare('select sequence from failed where inbox = $inbox order by sequence')
      .all({ inbox })
      .map(({ sequence }) => Number(sequence)),
  )

/** Strikes one out: the receiver took it, or it was deleted. */
export const strikeOut = (place: Place, inbox: string, sequence: number): void =>
  inVault(place, (db) => {
    const strike = 'delete from failed where inbox = $inbox and sequence = $sequence'
    db.prepare(strike).run({ inbox, sequence })
  })

const numberOf = (value: unknown): number | null => (typeof value === 'number' ? value : null)
