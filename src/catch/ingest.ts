/**
 * Events that reach one inbox at the same time are stored together: one statement reserves their
 * sequence numbers, so the row of the inbox, which all of its senders change, changes once.
 */
import { coalesce } from '../db/coalesce.ts'
import { attempt, type Db } from '../db/db.ts'
import type { Sealing } from '../payment/sealing.ts'
import type { EventTables, NewEvent } from './event-tables.ts'

/**
 * A quarter of a busy turn of the event loop: the store starts on them while the others are still being read. It
 * is also how many texts of statements there are.
 */
const EVENTS_TOGETHER = 16
/** A larger body is stored alone, so that no other event waits for its bytes or fails with it. */
const BYTES_TOGETHER = 64 * 1024

/** An inbox as it was read. Each read makes a new object. */
type Inbox = { publicId: string; number: number; revision: number }

type Waiting = {
  event: NewEvent
  resolve: (isStored: boolean) => void
  reject: (error: Error) => void
}

export function createIngest(db: Db, sealing: Sealing, insertEvents: EventTables['insert']) {
  const waiting = new Map<Inbox, Waiting[]>()

  function storeAll(inbox: Inbox): void {
    const some = waiting.get(inbox)
    waiting.delete(inbox)
    if (some) void store(inbox, some)
  }

  async function store(inbox: Inbox, together: Waiting[]): Promise<void> {
    const { publicId } = inbox
    const events = together.map(({ event }) => event)
    const use = events.find(({ access }) => access === 'authenticated')
    const seal = use ? sealing.statements(publicId, use.receivedAt) : []
    try {
      const done = await attempt(
        db.write({
          lockKey: publicId,
          statements: { events: insertEvents(inbox, events), seal },
        }),
      )
      const isStored = 'rows' in done
      if (isStored && use) sealing.sealed(publicId)
      // The inbox has no room for all of them, but may have room for some.
      if (!isStored && together.length > 1) for (const one of together) void store(inbox, [one])
      else for (const { resolve } of together) resolve(isStored)
    } catch (error) {
      for (const { reject } of together) reject(error as Error)
    }
  }

  const schedule = coalesce(() => {
    for (const inbox of [...waiting.keys()]) storeAll(inbox)
  })

  /**
   * Stores an event durably, or returns false if the inbox refuses it or has changed since it was read. A first use
   * seals the delivery.
   */
  return (inbox: Inbox, event: NewEvent): Promise<boolean> =>
    new Promise((resolve, reject) => {
      const one = { event, resolve, reject }
      if (event.body.length > BYTES_TOGETHER) return void store(inbox, [one])
      const some = waiting.get(inbox)
      if (!some) waiting.set(inbox, [one])
      else if (some.push(one) >= EVENTS_TOGETHER) storeAll(inbox)
      schedule()
    })
}
