/** A store belongs to one network and one kind of backend, for good. */
import { ConfigError } from './config.ts'
import type { Db } from './db/db.ts'

/**
 * Notes at the first start what the store belongs to; checks it at every later one.
 * @throws ConfigError when it belongs to another: real orders must never meet a simulator.
 */
export async function bindStore(
  db: Db,
  { backend, network }: { backend: string; network: string },
): Promise<void> {
  const mine = `${backend} on ${network}`
  await db.write([
    {
      text: `insert into meta (name, value) values ('lightning', $1) on conflict (name) do nothing`,
      values: [mine],
    },
  ])
  const [row] = await db.read<{ value: string }>(`select value from meta where name = 'lightning'`)
  if (row?.value !== mine) {
    throw new ConfigError(
      `This store belongs to ${row?.value}, and MAYFLY_LIGHTNING_URL is ${mine}. ` +
        'Restore the setting, or choose another MAYFLY_DATABASE_URL.',
    )
  }
}
