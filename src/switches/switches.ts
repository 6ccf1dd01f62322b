/** Both sides of a switch, for the products that have one. Neither side knows the other. */
import type { Db } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import { type Bindings, createBindings, type MonitorHealth } from './binding.ts'
import { createSwitchOwner, type SwitchOwner } from './owner.ts'

/** The health of a monitor, or null if it is gone. */
export type ReadHealth = (monitorId: string) => Promise<MonitorHealth | null>

export type Switches = {
  /** The monitors' side. */
  owner: SwitchOwner
  /** The secrets' side. */
  bindings: Bindings
  /** Monitors can be asked for from now on. Before that, and without them, nothing can be bound. */
  askMonitors(read: ReadHealth): void
}

export function createSwitches({ db, clock }: { db: Db; clock: Clock }): Switches {
  let monitorHealth: ReadHealth = async () => null
  return {
    owner: createSwitchOwner({ db, clock }),
    bindings: createBindings({ db, clock, monitorHealth: (id) => monitorHealth(id) }),
    askMonitors(read) {
      monitorHealth = read
    },
  }
}
