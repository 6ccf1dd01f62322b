/** Opens the backend that `MAYFLY_LIGHTNING_URL` names, and checks that it works. */
import type { Db } from '../db/db.ts'
import type { Clock, HeldClock } from '../lib/clock.ts'
import type { Lightning } from './lightning.ts'
import type { AccessProblem } from './node/access.ts'
import type { LightningNode } from './node/node.ts'
import type { Simulator } from './simulator.ts'
import {
  BACKEND_FORMS,
  type Backend,
  backendOf,
  readClnUrl,
  readLndUrl,
  readNwcUrl,
  readPhoenixdUrl,
} from './urls.ts'

export type Opened = {
  lightning: Lightning
  /** The payer's side of the simulator. Null for any other backend. */
  simulator: Simulator | null
  /** Why the node cannot be used, or null. `isAway` means that it does not answer. */
  problem: AccessProblem | null
  close(): Promise<void>
}

export type OpenDeps = {
  db: Db
  clock: Clock & Partial<HeldClock>
  warn: (message: string) => void
}

/** The names of the stored cursors, which count a node's settlements. */
export const CURSORS = { lnd: 'lnd_settle_index', cln: 'cln_pay_index' } as const

/** @throws Error that names the setting, for a wrong URL or file. */
export async function openLightning(url: string, deps: OpenDeps): Promise<Opened> {
  const kind = backendOf(url)
  if (kind === null) throw new Error(`MAYFLY_LIGHTNING_URL must be ${BACKEND_FORMS}`)
  if (kind === 'simulator') {
    const { createSimulator } = await import('./simulator.ts')
    const simulator = await createSimulator(deps)
    return { lightning: simulator, simulator, problem: null, close: async () => {} }
  }
  const node = await createNode(kind, url, deps)
  return {
    lightning: node,
    simulator: null,
    problem: await node.checkAccess(),
    close: node.close,
  }
}

/** Loads the chosen backend only. */
async function createNode(
  kind: Exclude<Backend, 'simulator'>,
  url: string,
  { db, clock, warn: onWarning }: OpenDeps,
): Promise<LightningNode> {
  switch (kind) {
    case 'lnd': {
      const { createLnd } = await import('./lnd/lnd.ts')
      const cursor = storedCursor(db, CURSORS.lnd)
      return createLnd({ ...(await readLndUrl(url)), clock, cursor, onWarning })
    }
    case 'phoenixd': {
      const { createPhoenixd } = await import('./phoenixd/phoenixd.ts')
      return createPhoenixd({ ...(await readPhoenixdUrl(url)), clock, onWarning })
    }
    case 'cln': {
      const { createCln } = await import('./cln/cln.ts')
      const cursor = storedCursor(db, CURSORS.cln)
      return createCln({ ...(await readClnUrl(url)), clock, cursor, onWarning })
    }
    case 'nwc': {
      const { createNwc } = await import('./nwc/nwc.ts')
      return createNwc({ ...readNwcUrl(url), clock, onWarning })
    }
    default:
      return kind satisfies never
  }
}

/** A cursor in the store. It only moves forward, also if several instances write it. */
export function storedCursor(db: Db, name: string) {
  return {
    async read(): Promise<number> {
      const [row] = await db.read<{ value: string }>('select value from meta where name = $1', name)
      return Number(row?.value ?? 0)
    },
    async write(value: number): Promise<void> {
      await db.write({
        lockKey: name,
        statements: {
          cursor: {
            text: `insert into meta (name, value) values ($1, $2) on conflict (name) do update
            set value = excluded.value
            where cast(meta.value as integer) < cast(excluded.value as integer)`,
            values: [name, String(value)],
          },
        },
      })
    },
  }
}
