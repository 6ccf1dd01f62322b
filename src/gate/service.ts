/**
 * The rules of GATE: an intent binds one payment to one request, a proof authorizes it once, and
 * repeats get the same receipt. The payer pays the project; the service only sees the payment hash.
 */
import type { Db } from '../db/db.ts'
import type { HeldClock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Network } from '../lightning/lightning.ts'
import { fingerprints, type Secrets } from '../secrets/secrets.ts'
import { isTokenOf, tokenHash } from '../secrets/tokens.ts'
import { createIntents } from './intents.ts'
import { createProofs } from './proofs.ts'
import type { Provider } from './provider.ts'
import type { Receipts } from './receipts.ts'
import { createGateStore, type ProjectRow, purgeUnpaid } from './store.ts'

/** How long unpaid intents are kept after their invoice expired, for late repeats and preimages. */
const KEEP_MS = 30 * 24 * 60 * 60 * 1000
/** Intents that one statement deletes at most: a large purge would block the writer. */
const PURGE_INTENTS = 500

export type GateService = ReturnType<typeof createGate>

export function createGate(deps: {
  db: Db
  provider: Provider
  receipts: Receipts
  secrets: Secrets
  network: Network
  clock: HeldClock
  log: Log
  publicUrl: () => string
  quoteSeconds: number
}) {
  const { db, receipts, secrets, clock } = deps
  const store = createGateStore(db)
  return {
    ...createIntents(deps),
    ...createProofs(deps),
    jwks: receipts.jwks,

    /** The project of this capability, or null. */
    async projectOf(capability: string): Promise<ProjectRow | null> {
      const project = await store.projectOfKey(tokenHash(capability))
      return project && isTokenOf('gate_key', capability, project.key_hash) ? project : null
    },

    /** The number of intents that may still be paid but whose secret is not configured. */
    foreign: (): Promise<number> => store.foreign(fingerprints(secrets), clock.now()),

    /** Deletes intents that were never paid, long after they expired. @returns how many. */
    async purge(now: number): Promise<number> {
      const { deleted } = await db.write({
        lockKey: 'gate_intent',
        statements: { deleted: purgeUnpaid(now - KEEP_MS, PURGE_INTENTS) },
      })
      return deleted.length
    },
  }
}
