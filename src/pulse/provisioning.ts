/** Provisions PULSE: a monitor for a settled order. */
import { rfc3339 } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import type { Grant, Provisioning } from '../payment/provisioning.ts'
import { tokenFromSeed, tokenHash } from '../secrets/tokens.ts'
import { GRACE_SECONDS, INTERVAL_SECONDS, type PulseCapability, type PulsePlan } from './schema.ts'
import { expiringAt } from './state.ts'
import { insertMonitor } from './store.ts'

export const PULSE_PROVISIONING: Provisioning = {
  newPublicId: () => newId('pulse'),
  provision(grant) {
    const plan = grant.plan as PulsePlan
    const { ownerToken, pingToken } = capability(grant)
    const minimumGraceSeconds = clamp(plan.minimumGraceSeconds, GRACE_SECONDS)
    return [
      insertMonitor({
        publicId: grant.publicId,
        publicStatusId: newId('pulse_status'),
        planId: grant.planId,
        ownerTokenHash: tokenHash(ownerToken),
        pingTokenHash: tokenHash(pingToken),
        heartbeatLimit: plan.heartbeatLimit,
        minimumGraceSeconds,
        expectedIntervalSeconds: clamp(plan.suggestedCadenceSeconds, INTERVAL_SECONDS),
        graceSeconds: minimumGraceSeconds,
        createdAt: grant.settledAt,
        expiresAt: grant.expiresAt,
        checkAt: expiringAt({ created_at: grant.settledAt, expires_at: grant.expiresAt }),
      }),
    ]
  },
  capability,
}

function capability(grant: Grant): PulseCapability {
  return {
    product: 'pulse',
    publicId: grant.publicId,
    ownerToken: tokenFromSeed('pulse_owner', grant.seed),
    pingToken: tokenFromSeed('pulse_ping', grant.seed),
    expiresAt: rfc3339(grant.expiresAt),
  }
}

const clamp = (value: number, { minimum, maximum }: { minimum: number; maximum: number }): number =>
  Math.min(Math.max(value, minimum), maximum)
