/** What the store keeps encrypted, and a start under a new secret: what older ones sealed is sealed under the current one. */
import { type Db, limitedTo } from '../db/db.ts'
import type { Log } from '../lib/log.ts'
import { type Secrets, seal, unseal } from '../secrets/secrets.ts'

/** The context of a sealed value is the id of its row. */
type Sealed = {
  table: string
  id: string
  /** The column with the `lockKey` of units that change the row. */
  lockedBy: string
  columns: readonly [string, ...string[]]
  keys: Parameters<typeof unseal>[0]
  /** Warns of rows that no configured secret opens, and counts them as this. */
  unopened?: { event: string; count: string }
}

const sealedIn = (secrets: Secrets): Sealed[] => [
  // Live orders that no secret opens stop the start, by what `OrderStore.foreign` counts.
  {
    table: 'purchase_order',
    id: 'order_id',
    lockedBy: 'order_id',
    columns: ['seed'],
    keys: secrets.seedKeys,
  },
  {
    table: 'alert_destination',
    id: 'destination_id',
    lockedBy: 'owner_id',
    columns: ['sealed_target', 'sealed_secret'],
    keys: secrets.keys('alert destination'),
    unopened: { event: 'alerts.foreign_secret', count: 'destinations' },
  },
  {
    table: 'catch_inbox',
    id: 'public_id',
    lockedBy: 'public_id',
    columns: ['response_secret'],
    keys: secrets.keys('catch response'),
    unopened: { event: 'catch.foreign_secret', count: 'inboxes' },
  },
]

const ROWS_AT_ONCE = 500

export async function reseal(deps: { db: Db; secrets: Secrets; log: Log }): Promise<void> {
  for (const sealed of sealedIn(deps.secrets)) {
    const count = await resealRows(deps.db, sealed)
    if (count > 0 && sealed.unopened) {
      deps.log.warn({ event: sealed.unopened.event, [sealed.unopened.count]: count })
    }
  }
}

/** @returns how many rows no configured secret opens. */
async function resealRows(db: Db, { table, id, lockedBy, columns, keys }: Sealed): Promise<number> {
  const [current] = keys
  if (!current) throw new Error('there is no secret to seal under')
  const text = `select ${id} as id, ${lockedBy} as lock_key, ${columns.join(', ')} from ${table}
    where ${columns[0]} is not null and ${id} > $1 order by ${id} ${limitedTo(2)}`
  let unopened = 0
  for (let after = ''; ; ) {
    const rows = await db.read(text, after, ROWS_AT_ONCE)
    for (const row of rows) {
      after = String(row.id)
      const read = columns.map((column) => {
        const before = row[column] as Uint8Array
        return { column, before, opened: unseal(keys, before, after) }
      })
      if (read.some(({ opened }) => !opened)) unopened++
      for (const { column, before, opened } of read) {
        if (!opened || opened.isCurrent) continue
        const again = seal(current, opened.plain, after)
        await db.write({
          lockKey: String(row.lock_key),
          statements: {
            // Only what was read: another instance may change it, or seal the order, at the same time.
            again: {
              text: `update ${table} set ${column} = $3 where ${id} = $1 and ${column} = $2`,
              values: [after, before, again],
            },
          },
        })
      }
    }
    if (rows.length < ROWS_AT_ONCE) return unopened
  }
}
