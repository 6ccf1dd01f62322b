/**
 * How far `catch listen --forward` and the tools of hosts got with each inbox, and what a receiver did not take, in the
 * vault.
 *
 * "sent" is committed just before the last byte of an event is passed to the system, and "done" when the receiver has
 * answered. So a kill never sends an event twice: at the next start, an event without an answer is among those that have
 * failed. It was not sent if the kill came between the commit and that byte.
 *
 * Of two listeners of one inbox the newer one goes on. Each writes under its own token, so the older one learns of it
 * before it sends anything more, and no lock can be left behind by a process that is gone.
 */
import { randomUUID } from 'node:crypto'
import { CliError } from '../exit.ts'
import { change, inVault, type Place, rowsIn } from './vault.ts'

export type Listener = ReturnType<typeof startListening>

/** Continues where the last listener of this inbox stopped, and takes over from one that still runs. */
export function startListening(place: Place, inbox: string) {
  const listener = randomUUID()
  const last = inVault(place, (db) => {
    db.prepare(UNANSWERED).run({ inbox })
    return numberOf(db.prepare(TAKE_OVER).get({ inbox, listener })?.last)
  })

  /** @param outcome what becomes of the event, where it has one. */
  function write(sequence: number, unanswered: number | null, outcome?: string): void {
    inVault(place, (db) => {
      const moved = change({ ...place, db }, MOVE, { inbox, listener, last: sequence, unanswered })
      if (moved === 0) throw new CliError(OTHER_LISTENER)
      if (outcome !== undefined) change({ ...place, db }, outcome, { inbox, sequence })
    })
  }

  return {
    /** Where the listener before this one stopped: the last event that it has sent. Null at the first start. */
    last,
    /** Everything after this event is to be sent, or sent again. */
    goOnAfter: (sequence: number) => write(sequence, null),
    sent: (sequence: number) => write(sequence, sequence),
    done: (sequence: number) => write(sequence, null, STRIKE_OUT),
    /** The receiver did not take it: remembered for `catch replay --failed`. */
    failed: (sequence: number) => write(sequence, null, FAILED),
  }
}

/** What the listener before this one has sent, and saw no answer of. */
const UNANSWERED = `
  insert into failed (inbox, sequence)
  select inbox, unanswered from listening where inbox = $inbox and unanswered is not null
  on conflict do nothing`

const TAKE_OVER = `
  insert into listening (inbox, listener) values ($inbox, $listener)
  on conflict do update set listener = excluded.listener, unanswered = null returning last`

const MOVE = `
  update listening set last = $last, unanswered = $unanswered
  where inbox = $inbox and listener = $listener`

const FAILED =
  'insert into failed (inbox, sequence) values ($inbox, $sequence) on conflict do nothing'

const OTHER_LISTENER = 'Another process forwards the webhooks of this inbox now, so this one stops.'

/** Forgets how far listeners and hosts of this inbox got. */
export function forgetListening(place: Place, inbox: string): void {
  change(place, 'delete from listening where inbox = $inbox', { inbox })
  change(place, 'delete from failed where inbox = $inbox', { inbox })
  change(place, 'delete from seen where inbox = $inbox', { inbox })
}

/** The events that the tools of a host have handed over. */
export function seenOf(place: Place, inbox: string): { upTo: number; beyond: Set<number> } {
  const [row] = rowsIn(place, 'select seen from listening where inbox = $inbox', { inbox })
  const beyond = rowsIn(place, 'select sequence from seen where inbox = $inbox', { inbox })
  return {
    upTo: Number(row?.seen ?? 0),
    beyond: new Set(beyond.map(({ sequence }) => Number(sequence))),
  }
}

/** Remembers what was handed over. It only grows: of two calls at once the one that got further counts. */
export function saw(
  place: Place,
  inbox: string,
  { sequences, upTo }: { sequences: readonly number[]; upTo: number | null },
): void {
  inVault(place, (db) => {
    const here = { ...place, db }
    if (upTo === null) for (const sequence of sequences) change(here, SAW, { inbox, sequence })
    else {
      change(here, SAW_UP_TO, { inbox, upTo })
      change(here, 'delete from seen where inbox = $inbox and sequence <= $upTo', { inbox, upTo })
    }
  })
}

const SAW = 'insert into seen (inbox, sequence) values ($inbox, $sequence) on conflict do nothing'

const SAW_UP_TO = `
  insert into listening (inbox, seen) values ($inbox, $upTo)
  on conflict do update set seen = max(seen, excluded.seen)`

/** The events of this inbox that its receiver did not take, in their order. */
export const failedEvents = (place: Place, inbox: string): number[] =>
  rowsIn(place, 'select sequence from failed where inbox = $inbox order by sequence', {
    inbox,
  }).map(({ sequence }) => Number(sequence))

/** Strikes one out: the receiver took it, or it was deleted. */
export const strikeOut = (place: Place, inbox: string, sequence: number): unknown =>
  change(place, STRIKE_OUT, { inbox, sequence })

const STRIKE_OUT = 'delete from failed where inbox = $inbox and sequence = $sequence'

const numberOf = (value: unknown): number | null => (typeof value === 'number' ? value : null)
