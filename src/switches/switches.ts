/** Both sides of a switch, for the products that have one. Neither side knows the other. */
import type { Db } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import { createBindings, type Monitors } from './binding.ts'
import { createSwitchOwner } from './owner.ts'

/** Before PULSE is open, and without it, nothing can be bound. */
const NO_MONITORS: Monitors = { health: async () => null, pingedAt: async () => null }

export function createSwitches({ db, clock }: { db: Db; clock: Clock }) {
  let monitors = NO_MONITORS
  return {
    /** The monitors' side. */
    owner: createSwitchOwner({ db, clock }),
    /** The secrets' side. */
    bindings: createBindings({ db, clock, monitors: () => monitors }),
    /** Monitors can be asked for from now on. */
    askMonitors(open: Monitors) {
      monitors = open
    },
  }
}

export type Switches = ReturnType<typeof createSwitches>
