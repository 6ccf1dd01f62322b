/** A store belongs to one network and one kind of backend, for good, and knows its node until that is replaced. */
import { ConfigError } from './config.ts'
import { attempt, type Db } from './db/db.ts'
import type { Network } from './lightning/lightning.ts'

/**
 * Notes at the first start what the store belongs to; checks it at every later one.
 *
 * `network` is null where the node cannot say it now: then the store must know.
 * @returns the network of the store.
 * @throws ConfigError when it belongs to another: real orders must never meet a simulator.
 */
export async function bindStore(
  db: Db,
  { backend, network }: { backend: string; network: Network | null },
): Promise<Network> {
  if (network !== null) {
    await db.write({
      lockKey: 'lightning',
      statements: {
        lightning: {
          text: `insert into meta (name, value) values ('lightning', $1) on conflict (name) do nothing`,
          values: [`${backend} on ${network}`],
        },
      },
    })
  }
  const [row] = await db.read<{ value: string }>(`select value from meta where name = 'lightning'`)
  if (!row) {
    throw new ConfigError('The first start on a new store needs the Lightning node to answer.')
  }
  const [knownBackend, knownNetwork] = row.value.split(' on ')
  if (knownBackend !== backend || (network !== null && knownNetwork !== network)) {
    const mine = network === null ? backend : `${backend} on ${network}`
    throw new ConfigError(
      `This store belongs to ${row.value}, and MAYFLY_LIGHTNING_URL is ${mine}. ` +
        'Restore the setting, or choose another MAYFLY_DATABASE_URL.',
    )
  }
  return knownNetwork as Network
}

/**
 * Notes which node the service works with. A new one counts its settlements from 1, so that what the
 * store knows of the old one's count, its `cursors`, goes with it: from there a new node would never tell
 * of anything.
 * @returns the node before it, where this call has noticed the change; else null.
 */
export async function noteNode(
  db: Db,
  nodeId: string,
  cursors: readonly string[],
): Promise<string | null> {
  await db.write({
    lockKey: 'lightning_node',
    statements: {
      node: {
        text: `insert into meta (name, value) values ('lightning_node', $1) on conflict (name) do nothing`,
        values: [nodeId],
      },
    },
  })
  const [known] = await db.read<{ value: string }>(
    `select value from meta where name = 'lightning_node'`,
  )
  if (!known || known.value === nodeId) return null
  const changed = await attempt(
    db.write({
      lockKey: 'lightning_node',
      statements: {
        node: {
          text: `update meta set value = $1 where name = 'lightning_node' and value = $2`,
          values: [nodeId, known.value],
          expect: 1,
        },
        cursors: cursors.map((name) => ({
          text: 'delete from meta where name = $1',
          values: [name],
        })),
      },
    }),
  )
  return 'rows' in changed ? known.value : null
}
