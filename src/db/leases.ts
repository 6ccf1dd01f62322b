/** Leases: one instance at a time does the work, and the others skip it. */
import { randomBytes } from 'node:crypto'
import type { Db } from './db.ts'
import { JUMP_MS } from './deletion-clock.ts'

/** After this, another instance may begin the work: the first one is too slow or dead. */
const MAX_WORK_MS = 120_000

export type InTurn = (name: string, everyMs: number, work: () => Promise<unknown>) => Promise<void>

/** For a store with one instance, which never waits for its turn. */
export const alone: InTurn = async (_name, _everyMs, work) => void (await work())

/**
 * Runs `work` unless another instance is running it, or ran it within `everyMs`. Failed work also waits that
 * long. If work takes too long or clocks differ, two instances may run it at once, so it must be safe then.
 */
export function createInTurn(db: Db, now: () => number): InTurn {
  const holder = randomBytes(9).toString('base64url')
  return async (name, everyMs, work) => {
    const startedAt = now()
    const { claimed } = await db.write({
      lockKey: name,
      statements: {
        claimed: {
          text: `insert into lease (name, holder, held_until) values ($1, $2, $3)
          on conflict (name) do update
          set holder = excluded.holder, held_until = excluded.held_until
          where lease.held_until <= $4 or lease.held_until > $5 returning name`,
          // A lease held for longer than any lease lasts was taken by a wrong clock.
          values: [
            name,
            holder,
            startedAt + MAX_WORK_MS,
            startedAt,
            startedAt + MAX_WORK_MS + everyMs + JUMP_MS,
          ],
        },
      },
    })
    if (claimed.length !== 1) return
    try {
      await work()
    } finally {
      await db.write({
        lockKey: name,
        statements: {
          lease: {
            text: 'update lease set held_until = $3 where name = $1 and holder = $2',
            // A little less than `everyMs`, so that timers of that length do not miss every other turn.
            values: [name, holder, startedAt + Math.floor(everyMs * 0.9)],
          },
        },
      })
    }
  }
}
