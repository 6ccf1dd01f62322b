/** Both sides of a switch: the monitor's, which falls silent, and the secret's, which waits for that. */
import { attempt, type Db, type Statement } from '../db/db.ts'
import { type Clock, rfc3339 } from '../lib/clock.ts'
import { isId, newId } from '../lib/ids.ts'
import type { SwitchState } from './states.ts'
import {
  type BindingRow,
  bindingOf,
  dropSwitches,
  dropUnbound,
  killBindings,
  makeSwitch,
  monitorOf,
  openArmed,
  reserveBinding,
  retireSwitch,
  timingsOf,
} from './store.ts'

/** An order lives for 30 days after its quote, and may be found to be paid until then. */
const KEEP_UNBOUND_MS = 40 * 24 * 60 * 60 * 1000
const MINUTE_MS = 60_000

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

/** What happens to a monitor, as far as a switch minds. Times are unix milliseconds. */
export type MonitorChange = {
  type: string
  publicId: string
  at: number
  /** How many pings it has had. */
  pingCount: number
}

/** The monitor's side: making a switch, retiring it, and what happens to the monitor. */
export function createSwitchOwner({ db, clock }: { db: Db; clock: Clock }) {
  return {
    /** The switch of a monitor; always the same one until it is retired. Null if `isThere` is refused. */
    async make(monitorId: string, isThere: Statement): Promise<string | null> {
      const done = await attempt(
        db.write({
          lockKey: monitorId,
          statements: {
            isThere,
            made: makeSwitch(newId('pulse_switch'), monitorId),
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

/** What a secret needs to know of the monitor that it waits for. Times are unix milliseconds. */
export type MonitorHealth = {
  /** It was pinged in time, no run has failed, and it accepts pings. */
  isHealthy: boolean
  expiresAt: number
  /** How long the pings that are left last, at the interval that is set. */
  beatsLastMs: number
  /** How long after a ping that comes now its absence would open the switch. */
  opensAfterMs: number
  /** It is late, and will open what waits for it unless a ping comes, even after its end. */
  isFallingSilent: boolean
  /** When it expects pings, for `SwitchOwner.timings`. */
  timing: string
}

/** What a secret asks of monitors. */
export type Monitors = {
  /** Null if the monitor is gone. */
  health(monitorId: string): Promise<MonitorHealth | null>
  /** When the ping of this number came, or null. */
  pingedAt(monitorId: string, number: number): Promise<number | null>
}

/** Whole minutes, because a sharper time would tell when the monitor was pinged. RFC 3339. */
export type SwitchStatus = {
  state: SwitchState
  /** What to do. */
  next: string
  since: string
  worksUntil: string
}

/** The secret's side: whether it may be bound, whether it is open, and what its buyer is told. */
export function createBindings({
  db,
  clock,
  monitors,
}: {
  db: Db
  clock: Clock
  monitors: () => Monitors
}) {
  async function stateOf(binding: BindingRow): Promise<{ state: SwitchState; since: number }> {
    const { opened_at, dead_at, monitor_id, monitor_ends_at, bound_at } = binding
    if (opened_at !== null) return { state: 'open', since: opened_at }
    if (dead_at !== null) return { state: 'dead', since: dead_at }
    const isOver = monitor_ends_at <= clock.now()
    if (isOver && !(await monitors().health(monitor_id))?.isFallingSilent) {
      return { state: 'dead', since: monitor_ends_at }
    }
    const armedAt = await monitors().pingedAt(monitor_id, binding.bound_ping_count + 1)
    return armedAt === null
      ? { state: 'waiting', since: bound_at }
      : // Its time may be an earlier one, if the clock was ahead at the purchase.
        { state: 'armed', since: Math.max(armedAt, bound_at) }
  }

  return {
    /**
     * Statements that bind an order to the monitor behind a switch, or null if it must not be sold: the switch is
     * unknown or retired, or its monitor is not healthy or cannot open it any more before `needsMs` have passed.
     */
    async reserve(
      switchId: string,
      needsMs: number,
    ): Promise<((orderId: string) => Statement[]) | null> {
      if (!isId('pulse_switch', switchId)) return null
      const monitorId = await monitorOf(db, switchId)
      const health = monitorId === null ? null : await monitors().health(monitorId)
      const now = clock.now()
      if (!health?.isHealthy) return null
      const lastsMs = needsMs + health.opensAfterMs
      if (health.expiresAt < now + lastsMs || health.beatsLastMs < needsMs) return null
      const { expiresAt: monitorEndsAt, timing } = health
      return (orderId) => reserveBinding({ orderId, switchId, monitorEndsAt, timing, now })
    },

    /** Whether the secret may be read: once it was open, it always is. */
    async isOpen(publicId: string): Promise<boolean> {
      const binding = await bindingOf(db, publicId)
      return binding !== null && binding.opened_at !== null
    },

    /** What the buyer sees, or null for a secret without a switch. */
    async status(publicId: string, expiresAt: number): Promise<SwitchStatus | null> {
      const binding = await bindingOf(db, publicId)
      if (!binding) return null
      const { state, since } = await stateOf(binding)
      const works = state === 'open' ? expiresAt : Math.min(expiresAt, binding.monitor_ends_at)
      return { state, next: NEXT[state], since: minute(since), worksUntil: minute(works) }
    },

    /** Deletes what was reserved for orders that were never paid. */
    async purge(now: number): Promise<void> {
      await db.write({
        lockKey: 'reveal_binding',
        statements: { unbound: dropUnbound(now - KEEP_UNBOUND_MS) },
      })
    },
  }
}

export type Bindings = ReturnType<typeof createBindings>

/** What the buyer of a secret does next. */
const NEXT: Record<SwitchState, string> = {
  waiting:
    'Let the job ping its monitor once more: the first ping after the purchase arms the switch.',
  armed: 'Nothing. The secret opens some time after the pings of its monitor stop.',
  open: 'Read the secret before it expires.',
  dead: 'This secret never opens. Buy another one with the switch of a monitor that is pinged.',
}

const minute = (unixMs: number): string => rfc3339(unixMs - (unixMs % MINUTE_MS))
