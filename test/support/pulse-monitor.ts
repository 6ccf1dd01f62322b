/** A monitor of PULSE in the store, without a purchase, and services whose clock is the test's. */
import assert from 'node:assert/strict'
import type { Db } from '../../src/db/db.ts'
import { createHints } from '../../src/db/hints.ts'
import type { BlindWindow } from '../../src/lib/windows.ts'
import { PULSE_PROVISIONING } from '../../src/pulse/provisioning.ts'
import { PULSE_PLANS, type PulseCapability, type PulsePlan } from '../../src/pulse/schema.ts'
import { createPulse, type PulseService } from '../../src/pulse/service.ts'
import { insertMonitor } from '../../src/pulse/store.ts'
import type { Signal } from '../../src/pulse/transition.ts'
import type { After } from './folder.ts'
import { aDatabase } from './store.ts'
import { unit } from './unit.ts'

export const SECOND = 1_000
export const MINUTE = 60 * SECOND
export const DAY = 24 * 60 * MINUTE
/** When the monitor begins. */
export const T = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
export const PING: Signal = { kind: 'ping', rid: null }

/** Monitors of which nobody is told, and for whose silence nothing waits. */
const UNWATCHED = {
  alerts: { tell: () => [], drop: () => [], wake() {} },
  switches: { timings: async () => [], onChange: () => [], onGone: () => [] },
  switchWaitMs: 0,
}

type NewMonitor = Parameters<typeof insertMonitor>[0]

/** Inserts a monitor with an interval and a grace of a minute. */
export const newMonitor = (
  some: Pick<NewMonitor, 'publicId' | 'expiresAt'> & Partial<NewMonitor>,
) =>
  insertMonitor({
    publicStatusId: `status of ${some.publicId}`,
    planId: 'standard',
    ownerTokenHash: new Uint8Array([1]),
    pingTokenHash: new Uint8Array([2]),
    heartbeatLimit: 100,
    minimumGraceSeconds: 60,
    expectedIntervalSeconds: 60,
    graceSeconds: 60,
    createdAt: T,
    checkAt: T,
    ...some,
  })

/** Stores a monitor of this plan that begins now, in unix milliseconds. */
export async function provisioned(
  db: Pick<Db, 'write'>,
  plan: PulsePlan,
  now: number,
): Promise<PulseCapability> {
  const grant = {
    orderId: 'order_1',
    publicId: PULSE_PROVISIONING.newPublicId(),
    planId: plan.planId,
    plan,
    terms: null,
    seed: crypto.getRandomValues(new Uint8Array(32)),
    settledAt: now,
    expiresAt: now + plan.durationSeconds * 1000,
  }
  await db.write(unit(...PULSE_PROVISIONING.provision(grant)))
  return PULSE_PROVISIONING.capability(grant) as PulseCapability
}

type By = { by?: PulseService; token?: string }

/** A monitor with an interval and a grace of a minute. Times are in milliseconds from its beginning. */
export async function aMonitor(
  t: After,
  plan: Partial<PulsePlan> = {},
  parts: Partial<Parameters<typeof createPulse>[0]> = {},
) {
  const db = await aDatabase(t)
  let now = T
  let windows: BlindWindow[] = []
  let isHeld = false
  const clock = {
    now: () => now,
    windows: () => windows,
    isHeld: () => isHeld,
    beat: async () => undefined,
  }
  /** Another instance. */
  const run = (store: Db = db): PulseService =>
    createPulse({ db: store, hints: createHints(), clock, ...UNWATCHED, ...parts })
  const pulse = run()
  const capability = await provisioned(db, { ...PULSE_PLANS.spark, ...plan }, now)
  const { publicId, ownerToken, pingToken } = capability

  async function monitor() {
    const found = await pulse.owned(publicId, ownerToken)
    assert.ok(found)
    return found
  }
  const signal = async (signal: Signal, { by = pulse, token = pingToken }: By = {}) => {
    const facts = await by.pinged(publicId, token)
    return facts !== null && by.signal(facts, signal)
  }
  const status = async () => pulse.status(await monitor())
  const sinceStart = (time: string | null): number | null =>
    time === null ? null : Date.parse(time) - T
  return {
    db,
    clock,
    run,
    pulse,
    capability,
    publicId,
    monitor,
    status,
    signal,
    ping: (by: By = {}) => signal(PING, by),
    at(ms: number) {
      now = T + ms
    },
    /** Blind windows, in seconds. */
    blind(...spans: [began: number, ended: number][]) {
      windows = spans.map(([began, ended]) => ({
        beganAt: T + began * SECOND,
        endedAt: T + ended * SECOND,
      }))
    },
    hold(is: boolean) {
      isHeld = is
    },
    purge: () => pulse.purge(now),
    change: async (settings: Parameters<PulseService['change']>[1]) =>
      pulse.change(await monitor(), settings),
    /** The state and its times. */
    async seen() {
      const { state, stateChangedAt, lateAt } = await status()
      return { state, since: sinceStart(stateChangedAt), lateAt: sinceStart(lateAt) }
    },
  }
}
