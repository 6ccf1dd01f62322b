/**
 * Events that reach one inbox at the same time are stored together: one statement reserves their
 * sequence numbers, so the row of the inbox, which all of its senders change, changes once.
 */
import { coalesce } from '../db/coalesce.ts'
import { attempt, type Db } from '../db/db.ts'
import type { Sealing } from '../payment/sealing.ts'
import type { InsertEvents, NewEvent } from './event-insert.ts'

/**
 * A quarter of a busy turn of the event loop: the store starts on them while the others are still being read. It
 * is also how many texts of statements there are.
 */
const EVENTS_TOGETHER = 16
/** A larger body is stored alone, so that no other event waits for its bytes or fails with it. */
const BYTES_TOGETHER = 64 * 1024

type Waiting = {
  event: NewEvent
  resolve: (isStored: boolean) => void
  reject: (error: Error) => void
}

/** Stores an event durably, or returns false if the inbox refuses it. A first use seals the delivery. */
export type Ingest = (publicId: string, event: NewEvent) => Promise<boolean>

export function createIngest(db: Db, sealing: Sealing, insertEvents: InsertEvents): Ingest {
  const waiting = new Map<string, Waiting[]>()

  function storeAll(publicId: string): void {
    const together = waiting.get(publicId)
    waiting.delete(publicId)
    if (together) void store(publicId, together)
  }

  async function store(publicId: string, together: Waiting[]): Promise<void> {
    const events = together.map(({ event }) => event)
    const use = events.find(({ access }) => access === 'authenticated')
    const seal = use ? sealing.statements(publicId, use.receivedAt) : []
    try {
      const done = await attempt(
        db.write({
          lockKey: publicId,
          statements: { events: insertEvents(publicId, events), seal },
        }),
      )
      const isStored = 'rows' in done
      if (isStored && use) sealing.sealed(publicId)
      // The inbox has no room for all of them, but may have room for some.
      if (!isStored && together.length > 1) for (const one of together) void store(publicId, [one])
      else for (const { resolve } of together) resolve(isStored)
    } catch (error) {
      for (const { reject } of together) reject(error as Error)
    }
  }

  const schedule = coalesce(() => {
    for (const publicId of [...waiting.keys()]) storeAll(publicId)
  })

  return (publicId, event) =>
    new Promise((resolve, reject) => {
      const one = { event, resolve, reject }
      if (event.body.length > BYTES_TOGETHER) return void store(publicId, [one])
      const together = waiting.get(publicId)
      if (!together) waiting.set(publicId, [one])
      else if (together.push(one) >= EVENTS_TOGETHER) storeAll(publicId)
      schedule()
    })
}
