/** Deletes inboxes that are over, with everything that was in them. */
import { attempt, type Db } from '../db/db.ts'
import type { EventTables } from './event-tables.ts'
import type { Refusals } from './refusals.ts'
import { dropInbox, type InboxRow, type InboxStore, unextendedInbox } from './store.ts'

/** How long the owner sees `expired`. Together with the purge's interval, less than 15 minutes. */
const SHOW_EXPIRED_MS = 10 * 60 * 1000
const PURGE_INBOXES = 100
const PURGE_EVENTS = 100

/** @returns what deletes inboxes that are over and their events, and says how many inboxes it deleted. */
export function createPurge(deps: {
  db: Db
  store: InboxStore
  events: EventTables
  refusals: Refusals
}): (now: number) => Promise<number> {
  const { db, store, events, refusals } = deps

  async function deleteOver(now: number): Promise<number> {
    const shownSince = now - SHOW_EXPIRED_MS
    let dropped = 0
    for (;;) {
      const inboxes = await store.purgeable({ now, shownSince }, events.source, PURGE_INBOXES)
      for (const inbox of inboxes) {
        await deleteEvents(inbox)
        if (inbox.destroyed_at === null && inbox.expires_at > shownSince) continue
        await db.write({
          lockKey: inbox.public_id,
          statements: { inbox: dropInbox(inbox, events.source) },
        })
        dropped++
      }
      if (inboxes.length < PURGE_INBOXES) return dropped
    }
  }

  async function deleteEvents(inbox: InboxRow): Promise<void> {
    for (;;) {
      const done = await attempt(
        db.write({
          lockKey: inbox.public_id,
          statements: {
            // The clock of the instance that extended it may differ from ours.
            over: inbox.destroyed_at === null ? [unextendedInbox(inbox)] : [],
            deleted: events.purge(inbox.number, PURGE_EVENTS),
          },
        }),
      )
      if ('refused' in done || done.rows.deleted.length < PURGE_EVENTS) return
    }
  }

  return async (now) => {
    let dropped: number
    try {
      // First, because each inbox that is over is looked up among all that came lately.
      await events.tidy()
    } finally {
      // Deleting keeps a promise, and may be what makes room for the rest.
      dropped = await deleteOver(now)
      await refusals.purge()
    }
    return dropped
  }
}
