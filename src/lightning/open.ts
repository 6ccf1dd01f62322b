/** From `MAYFLY_LIGHTNING_URL` to a backend that was seen to work, or a sentence that says why not. */
import type { Db } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import { backendOf } from './backend.ts'
import type { Lightning } from './lightning.ts'
import { createLnd } from './lnd.ts'
import { readLndUrl } from './lnd-url.ts'
import { createSimulator, type Simulator } from './simulator.ts'

export type Opened = {
  lightning: Lightning
  /** The payer's side, where the backend has one: the simulator alone. */
  simulator: Simulator | null
  /** What is wrong with the access to the node; `isAway` when the node just does not answer. */
  problem: { sentence: string; isAway: boolean } | null
  close(): Promise<void>
}

/** @throws Error that names the setting, for a URL or a file that is not what it should be. */
export async function openLightning(
  url: string,
  deps: { db: Db; clock: Clock; warn: (message: string) => void },
): Promise<Opened> {
  if (backendOf(url) === 'simulator') {
    const simulator = await createSimulator(deps)
    return { lightning: simulator, simulator, problem: null, close: async () => {} }
  }
  const { db, clock, warn } = deps
  const lnd = createLnd({
    ...(await readLndUrl(url)),
    clock,
    cursor: storedCursor(db, 'lnd_settle_index'),
    onWarning: warn,
  })
  return {
    lightning: lnd,
    simulator: null,
    problem: await lnd.checkAccess(),
    close: () => lnd.close(),
  }
}

/** Where a stream got to, kept in the store. Only ever moves forward, whoever writes it. */
function storedCursor(db: Db, name: string) {
  return {
    async read(): Promise<number> {
      const [row] = await db.read<{ value: string }>('select value from meta where name = $1', name)
      return Number(row?.value ?? 0)
    },
    async write(value: number): Promise<void> {
      await db.write([
        {
          text: `insert into meta (name, value) values ($1, $2) on conflict (name) do update
            set value = excluded.value
            where cast(meta.value as integer) < cast(excluded.value as integer)`,
          values: [name, String(value)],
        },
      ])
    },
  }
}
