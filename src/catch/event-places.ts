/**
 * Events on SQLite, which writes whole pages. An index entry for each event of many inboxes in turn would dirty a
 * page of its own, so new entries are kept together in the order of arrival (`catch_event_recent`), and sorted into
 * the index (`catch_event_place`) when there are many: a page of it then takes several. Readers use the view
 * `catch_event`, which looks in both.
 */
import { type Db, limitedTo, type Statement } from '../db/db.ts'
import {
  EVENT_COLUMNS,
  type EventWrites,
  type InsertEvents,
  JSON_OF_NO_HEADERS,
  placeholders,
  reserved,
  reserveEvents,
  VALUES_OF_EVENT,
  valuesOf,
} from './event-insert.ts'

/**
 * After so many, what is recent is sorted in at once. More of them share a page, but every reader looks at all that
 * are not sorted yet, in up to 0.2 ms, and other writes wait for the 10 ms of the sorting.
 */
const EVENTS_BETWEEN = 4096
/**
 * Of one inbox, so many are sorted in together. Its others go into the index at once, where they share a page
 * anyway. To read a page of its events, all of its recent ones are looked at, 2 µs each.
 */
const RECENT_OF_INBOX = 64
const LIMITS = { between: EVENTS_BETWEEN, mostOfInbox: RECENT_OF_INBOX }

export function createPlaces(
  db: Db,
  { between, mostOfInbox }: { between: number; mostOfInbox: number } = LIMITS,
): EventWrites {
  /** Since the last sorting, in this process. A refused event counts too, which only sorts a little earlier. */
  let events = 0
  const recentOf = new Map<string, number>()
  let sorting: Promise<unknown> | null = null

  /** Decides whether so many more are recent, and counts them. */
  function areRecent(publicId: string, count: number): boolean {
    events += count
    const ofInbox = (recentOf.get(publicId) ?? 0) + count
    if (ofInbox > mostOfInbox) return false
    recentOf.set(publicId, ofInbox)
    return true
  }

  function sortIn(): Promise<unknown> {
    events = 0
    recentOf.clear()
    sorting ??= db
      .write({ lockKey: 'catch_event_recent', statements: SORT_IN, durability: 'deferred' })
      .finally(() => {
        sorting = null
      })
    return sorting
  }

  return {
    insert(publicId, some) {
      const isRecent = areRecent(publicId, some.length)
      // What is not sorted in now is found all the same, and the next turn tries again.
      if (events >= between) void sortIn().catch(() => undefined)
      return insertStatements(publicId, some, isRecent)
    },
    purge: purgeStatements,
    async tidy() {
      const [some] = await db.read('select 1 as found from catch_event_recent limit 1')
      if (some) await sortIn()
    },
  }
}

const NUMBER = '(select number from catch_inbox_facts where public_id = $1)'
const RESERVE = reserveEvents('catch_inbox_use', `number = ${NUMBER}`)
const INSERT = `insert into catch_event_row (inbox, headers, is_recent, ${EVENT_COLUMNS})
  select number, ${JSON_OF_NO_HEADERS}, $2, last_sequence - $3, ${placeholders(4, VALUES_OF_EVENT - 1)}
  from catch_inbox_use where number = ${NUMBER}`

/** Reserves sequence numbers and bytes in the inbox, then stores each event under its number. */
function insertStatements(
  publicId: string,
  events: Parameters<InsertEvents>[1],
  isRecent: boolean,
): Statement[] {
  const last = events.length - 1
  return [
    { text: RESERVE, values: reserved(publicId, events), expect: 1 },
    ...events.map((event, place) => ({
      text: INSERT,
      values: [publicId, isRecent ? 1 : 0, ...valuesOf(event, last - place)],
      expect: 1,
    })),
  ]
}

const SORT_IN = {
  sorted: {
    text: `insert into catch_event_place (inbox, sequence, id)
      select inbox, sequence, id from catch_event_recent order by inbox, sequence`,
    values: [],
  },
  recent: { text: 'delete from catch_event_recent', values: [] },
}

/** Deletes rows, not what the view shows of them: it would read their bodies. */
const purgeStatements: EventWrites['purge'] = (publicId, max) => [
  {
    text: `delete from catch_event_row where id in (
        select id from catch_event_place where inbox = ${NUMBER} order by sequence ${limitedTo(2)})
      returning sequence`,
    values: [publicId, max],
  },
  {
    text: `delete from catch_event_row where id in (
        select id from catch_event_recent where inbox = ${NUMBER} order by id ${limitedTo(2)})
      returning sequence`,
    values: [publicId, max],
  },
]
