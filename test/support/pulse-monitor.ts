/** A monitor of PULSE in the store, without a purchase. */
import type { Db } from '../../src/db/db.ts'
import { PULSE_PROVISIONING } from '../../src/pulse/provisioning.ts'
import type { PulseCapability, PulsePlan } from '../../src/pulse/schema.ts'
import { unit } from './unit.ts'

/** Monitors of which nobody is told, and for whose silence nothing waits. */
export const UNWATCHED = {
  alerts: { tell: () => [], drop: () => [], wake() {} },
  switches: { timings: async () => [], onChange: () => [], onGone: () => [] },
  switchWaitMs: 0,
}

/** Stores a monitor of this plan that begins now, in unix milliseconds. */
export async function provisioned(
  db: Pick<Db, 'write'>,
  plan: PulsePlan,
  now: number,
): Promise<PulseCapability> {
  const grant = {
    ...{ orderId: 'order_1', publicId: PULSE_PROVISIONING.newPublicId(), planId: plan.planId },
    ...{ plan, terms: null, seed: crypto.getRandomValues(new Uint8Array(32)) },
    ...{ settledAt: now, expiresAt: now + plan.durationSeconds * 1000 },
  }
  await db.write(unit(...PULSE_PROVISIONING.provision(grant)))
  return PULSE_PROVISIONING.capability(grant) as PulseCapability
}
