/** Leases: one instance at a time does the work, and the others skip it. */
import { randomBytes } from 'node:crypto'
import type { Db, Statement } from './db.ts'

/** After this, another instance may begin the work: the first one is dead, or stands still. */
const LEASE_MS = 2_500
/** Whoever works renews its lease this often. */
const RENEW_EVERY_MS = 800

export type InTurn = (name: string, everyMs: number, work: () => Promise<unknown>) => Promise<void>

/** For a store with one instance, which never waits for its turn. */
export const alone: InTurn = async (_name, _everyMs, work) => void (await work())

/**
 * Runs `work` unless another instance is running it, or ran it within `everyMs`. Failed work also waits that
 * long. If an instance stands still, two may run it at once, so it must be safe then.
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
          where lease.held_until <= $4 returning name`,
          values: [name, holder, startedAt + LEASE_MS, startedAt],
        },
      },
    })
    if (claimed.length !== 1) return
    const hold = (until: number): Promise<unknown> =>
      db.write({ lockKey: name, statements: { lease: holdUntil({ name, holder, until }) } })
    let renewing: Promise<unknown> = Promise.resolve()
    const renewal = setInterval(() => {
      // If it fails, the lease may end, and another instance works beside this one.
      renewing = renewing.then(() => hold(now() + LEASE_MS)).catch(() => undefined)
    }, RENEW_EVERY_MS).unref()
    try {
      await work()
    } finally {
      clearInterval(renewal)
      // A renewal under way would end the pause early.
      await renewing
      // A little less than `everyMs`, so that timers of that length do not miss every other turn.
      await hold(startedAt + Math.floor(everyMs * 0.9))
    }
  }
}

const holdUntil = (lease: { name: string; holder: string; until: number }): Statement => ({
  text: 'update lease set held_until = $3 where name = $1 and holder = $2',
  values: [lease.name, lease.holder, lease.until],
})
