/**
 * Takedowns: the operator suspends a capability by its public id, whatever the product, and resumes it. Commands
 * write to the store, running or not. The statements that use a capability carry the condition, so nothing uses a
 * suspended one. Who waits for it looks at the store every few seconds anyway.
 */
import { attempt, type Db, type Statement } from '../db/db.ts'
import type { Takedown } from '../http/product.ts'

/** A capability that was suspended. Times are unix milliseconds. */
export type Suspension = {
  publicId: string
  product: string
  reason: string
  suspendedAt: number
  /** Null while it lasts. */
  resumedAt: number | null
}

/** One capability, and how its product suspends it. */
export type Target = { publicId: string; product: string; takedown: Takedown }

/** Suspends a capability. Returns false if it is unknown, over, or suspended already. */
export async function suspend(
  db: Db,
  { publicId, product, takedown }: Target,
  { reason, now }: { reason: string; now: number },
): Promise<boolean> {
  const done = await attempt(
    db.write({
      lockKey: publicId,
      statements: {
        capability: takedown.suspend(publicId, now),
        record: {
          text: `insert into takedown (public_id, product, reason, suspended_at) values ($1, $2, $3, $4)
            on conflict (public_id) do update
            set reason = excluded.reason, suspended_at = excluded.suspended_at, resumed_at = null`,
          values: [publicId, product, reason, now],
          expect: 1,
        },
      },
    }),
  )
  return 'rows' in done
}

/**
 * Resumes a capability. `over`: it has ended meanwhile, and is only taken off the list. `unknown`: it was not
 * suspended.
 */
export async function resume(
  db: Db,
  { publicId, takedown }: Target,
  now: number,
): Promise<'resumed' | 'over' | 'unknown'> {
  const record: Statement = {
    text: 'update takedown set resumed_at = $2 where public_id = $1 and resumed_at is null',
    values: [publicId, now],
  }
  const capability = takedown.resume(publicId, now)
  const done = await attempt(db.write({ lockKey: publicId, statements: { capability, record } }))
  if ('rows' in done) return 'resumed'
  const listed = await attempt(
    db.write({ lockKey: publicId, statements: { record: { ...record, expect: 1 } } }),
  )
  return 'rows' in listed ? 'over' : 'unknown'
}

/** What is suspended now, or also what once was, newest first. */
export async function listSuspensions(
  db: Pick<Db, 'read'>,
  { isAll }: { isAll: boolean },
): Promise<Suspension[]> {
  return db.read<Suspension>(
    `select public_id as "publicId", product, reason, suspended_at as "suspendedAt", resumed_at as "resumedAt"
    from takedown ${isAll ? '' : 'where resumed_at is null'} order by suspended_at desc`,
  )
}
