/** A monitor's side of a switch: making it, retiring it, and what happens to the monitor. */
import { attempt, type Db, type Statement } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import {
  dropSwitches,
  killBindings,
  makeSwitch,
  openArmed,
  retireSwitch,
  timingsOf,
} from './store.ts'

/** What happens to a monitor, as far as a switch minds. Times are unix milliseconds. */
export type MonitorChange = {
  type: string
  publicId: string
  at: number
  /** How many pings it has had. */
  pingCount: number
}

export function createSwitchOwner({ db, clock }: { db: Db; clock: Clock }) {
  return {
    /** The switch of a monitor; always the same one until it is retired. Null if `isThere` is refused. */
    async make(monitorId: string, isThere: Statement): Promise<string | null> {
      const done = await attempt(
        db.write({
          lockKey: monitorId,
          statements: {
            isThere,
            made: makeSwitch({ switchId: newId('pulse_switch'), monitorId, now: clock.now() }),
          },
        }),
      )
      return 'rows' in done ? String(done.rows.made[0]?.switch_id) : null
    },

    /** Returns false if the monitor has none. What is bound to it stays bound. */
    async retire(monitorId: string): Promise<boolean> {
      const done = await attempt(
        db.write({ lockKey: monitorId, statements: { retired: retireSwitch(monitorId) } }),
      )
      return 'rows' in done
    },

    /** When the monitor expected pings as each secret was bound that still waits for its silence. */
    timings: (monitorId: string): Promise<string[]> => timingsOf(db, monitorId),

    /** Statements for the unit of a change: silence opens what is armed, and exhaustion shuts the rest for good. */
    onChange({ type, publicId: monitorId, at: now, pingCount }: MonitorChange): Statement[] {
      if (type === 'exhausted') return [killBindings([monitorId], now)]
      // A failed run is a sign of life, and a lateness alone opens nothing: a ping may still come.
      return type === 'silent' ? [openArmed({ monitorId, pingCount, now })] : []
    },

    /**
     * Statements for the unit that deletes these monitors. The switches first: whoever reserves a binding locks its
     * switch, and ends before the bindings are read.
     */
    onGone: (monitorIds: readonly string[]): Statement[] =>
      monitorIds.length === 0
        ? []
        : [dropSwitches(monitorIds), killBindings(monitorIds, clock.now())],
  }
}

export type SwitchOwner = ReturnType<typeof createSwitchOwner>
