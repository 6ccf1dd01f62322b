/**
 * Aliases: a program that makes a new key for each attempt sends the credential of its order under a key
 * without an order. That key then names this order too, so that repeating it is never a new purchase.
 */
import { attempt, type Db, type Statement } from '../db/db.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { isKeyOf, keyHash } from './idempotency.ts'

/** Keys that one order may have besides its own: far more than a program makes attempts. */
export const MAX_ALIASES = 64

export type Aliases = {
  /** Lets a key name this order, unless it names one already. */
  add(alias: { aliasId: string; orderId: string; key: string; now: number }): Promise<void>
  /** Whether this key is an alias of the order. */
  has(orderId: string, key: string): Promise<boolean>
}

export function createAliases({ db, secrets }: { db: Db; secrets: Secrets }): Aliases {
  return {
    async add({ aliasId, orderId, key, now }) {
      const alias = insertAlias({ aliasId, orderId, hash: keyHash(secrets, key), now })
      await attempt(db.write({ lockKey: aliasId, statements: { alias } }))
    },
    async has(orderId, key) {
      const rows = await db.read<{ key_hash: Uint8Array }>(
        'select key_hash from order_alias where order_id = $1',
        orderId,
      )
      return rows.some((row) => isKeyOf(secrets, key, row.key_hash))
    },
  }
}

const insertAlias = ({
  aliasId,
  orderId,
  hash,
  now,
}: {
  aliasId: string
  orderId: string
  hash: Uint8Array
  now: number
}): Statement => ({
  text: `insert into order_alias (alias_id, order_id, key_hash, created_at)
    select $1, $2, $3, cast($4 as bigint)
    where not exists (select 1 from purchase_order where order_id = $1)
      and (select count(*) from order_alias where order_id = $2) < ${MAX_ALIASES}
    on conflict (alias_id) do nothing`,
  values: [aliasId, orderId, hash, now],
})
