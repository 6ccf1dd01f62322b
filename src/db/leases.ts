/** Leases: work that one instance does at a time, so that the others need not. */
import { randomBytes } from 'node:crypto'
import type { Db } from './db.ts'
import { JUMP_MS } from './deletion-clock.ts'

/** After this, another instance may begin the work: the first is too slow, or dead. */
const MAX_WORK_MS = 120_000

export type InTurn = (name: string, everyMs: number, work: () => Promise<unknown>) => Promise<void>

/** For a store with one instance: it is always its turn. */
export const alone: InTurn = async (_name, _everyMs, work) => void (await work())

/**
 * Runs `work` unless another instance does, or did within `everyMs`. Work that fails is not done
 * again before that either. Two may still do it at once, when the first takes too long or the
 * clocks differ: it must bear that.
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
          // One that is held for longer than any is was taken by a clock that was wrong.
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
            // A little less, so that timers of the same length do not miss every other turn.
            values: [name, holder, startedAt + Math.floor(everyMs * 0.9)],
          },
        },
      })
    }
  }
}
