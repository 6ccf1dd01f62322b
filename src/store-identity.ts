/** A store belongs to one network and one kind of backend, for good. */
import { ConfigError } from './config.ts'
import type { Db } from './db/db.ts'
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
    await db.write([
      {
        text: `insert into meta (name, value) values ('lightning', $1) on conflict (name) do nothing`,
        values: [`${backend} on ${network}`],
      },
    ])
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
