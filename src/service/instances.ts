/** The parts that the instances of a service share, besides the rows of their store. */
import type { Logger } from 'pino'
import type { ServiceClock } from '../db/clock.ts'
import type { Db } from '../db/db.ts'
import { createHints } from '../db/hints.ts'
import { alone, createInTurn } from '../db/leases.ts'
import { openMemoryBucket } from '../http/limits.ts'
import type { Secrets } from '../secrets/secrets.ts'
import type { Config } from './config.ts'

/** The connections to PostgreSQL beside those of the store: one for notices. */
export const CONNECTIONS_BESIDE_STORE = 1

/** A SQLite store has one instance, which shares nothing. */
export async function joinInstances(
  where: Config['databaseUrl'],
  { db, secrets, clock, log }: { db: Db; secrets: Secrets; clock: ServiceClock; log: Logger },
) {
  if (where.kind === 'sqlite') {
    const hints = createHints()
    return {
      hints,
      inTurn: alone,
      openBucket: openMemoryBucket,
      purge: async () => undefined,
      close: hints.close,
    }
  }
  // A SQLite store never needs PostgreSQL's client.
  const [{ createSharedLimits, purgeLimits }, { openPostgresHints }] = await Promise.all([
    import('../http/shared-limits.ts'),
    import('../db/postgres/hints.ts'),
  ])
  const [secret] = secrets.keys('rate limit')
  const limits = createSharedLimits({
    db,
    clock,
    secret,
    onAway: (reason) => log.warn({ event: 'limits.alone', reason }),
    onBack: () => log.info({ event: 'limits.shared' }),
  })
  const hints = await openPostgresHints(where.url, {
    hasOthers: clock.hasOthers,
    onLost: (reason) => log.warn({ event: 'hints.lost', reason }),
    onBack: () => log.info({ event: 'hints.back' }),
  })
  return {
    hints,
    inTurn: createInTurn(db, clock.now),
    openBucket: limits.openBucket,
    /** Deletes the counts of rate-limit windows that have ended. */
    purge: (now: number) => purgeLimits(db, now),
    async close() {
      limits.close()
      await hints.close()
    },
  }
}
