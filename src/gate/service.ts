/**
 * The rules of GATE: an intent binds one payment to one request, a proof authorizes it once, and
 * the receipt is the same for whoever asks again. The money goes to the project; we see a hash.
 */
import type { Db } from '../db/db.ts'
import { before, type Clock, type DeletionTime } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Network } from '../lightning/lightning.ts'
import { fingerprints, type Secrets } from '../secrets/secrets.ts'
import { isTokenOf, tokenHash } from '../secrets/tokens.ts'
import { purgeUnpaid } from './intent-store.ts'
import { createIntents, type Intents } from './intents.ts'
import type { ProjectRow } from './project-store.ts'
import { createProofs, type Proofs } from './proofs.ts'
import type { Provider } from './provider.ts'
import type { Receipts } from './receipts.ts'
import { createGateStore } from './store.ts'

/** Intents stay this long after their invoice, so that a late repeat or preimage finds its own. */
const KEEP_MS = 30 * 24 * 60 * 60 * 1000
/** Intents deleted by one statement, so that none holds the store up. */
const PURGE_INTENTS = 500

export type GateService = Intents &
  Proofs & {
    /** The project that this capability opens, or null. */
    projectOf(capability: string): Promise<ProjectRow | null>
    jwks: Receipts['jwks']
    /** Intents that may still be paid and were made under none of the configured secrets. */
    foreign(): Promise<number>
    /** Deletes what was never paid, long after. @returns how many intents were deleted. */
    purge(now: DeletionTime): Promise<number>
  }

export function createGate(deps: {
  db: Db
  provider: Provider
  receipts: Receipts
  secrets: Secrets
  network: Network
  clock: Clock
  log: Log
  publicUrl: () => string
  quoteSeconds: number
}): GateService {
  const { db, receipts, secrets, clock } = deps
  const store = createGateStore(db)
  return {
    ...createIntents(deps),
    ...createProofs(deps),
    jwks: receipts.jwks,

    async projectOf(capability) {
      const project = await store.projectOfKey(tokenHash(capability))
      return project && isTokenOf('gate_key', capability, project.key_hash) ? project : null
    },

    foreign: () => store.foreign(fingerprints(secrets), clock.now()),

    async purge(now) {
      const { deleted } = await db.write({
        lockKey: 'gate_intent',
        statements: { deleted: purgeUnpaid(before(now, KEEP_MS), PURGE_INTENTS) },
      })
      return deleted.length
    },
  }
}
