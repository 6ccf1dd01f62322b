/** Provisions PULSE: a monitor for a settled order. */
import { rfc3339 } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { GRACE_SECONDS, INTERVAL_SECONDS } from '../lib/monitor-bounds.ts'
import {
  extendedEnd,
  extendedLimit,
  type Grant,
  type Provisioning,
} from '../payment/provisioning.ts'
import { tokenFromSeed, tokenHash } from '../secrets/tokens.ts'
import { extendBindings } from '../switches/store.ts'
import type { MonitorTerms, PulseCapability, PulsePlan } from './schema.ts'
import { expiringAt, isActive } from './state.ts'
import { createPulseStore, extendMonitor, insertMonitor } from './store.ts'

export const PULSE_PROVISIONING: Provisioning = {
  newPublicId: () => newId('pulse'),
  provision(grant) {
    const plan = grant.plan as PulsePlan
    const { ownerToken, pingToken } = capability(grant)
    const terms = (grant.terms ?? {}) as MonitorTerms
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
        name: terms.name ?? '',
        description: terms.description ?? '',
        expectedIntervalSeconds:
          terms.expectedIntervalSeconds ?? clamp(plan.suggestedCadenceSeconds, INTERVAL_SECONDS),
        graceSeconds: terms.graceSeconds ?? minimumGraceSeconds,
        schedule: terms.schedule,
        isShared: terms.publicStatusEnabled ?? false,
        createdAt: grant.settledAt,
        expiresAt: grant.expiresAt,
        checkAt: expiringAt({ created_at: grant.settledAt, expires_at: grant.expiresAt }),
      }),
    ]
  },
  capability,
  async extend(db, { publicId, plan, now }) {
    const monitor = await createPulseStore(db).monitor(publicId)
    if (!monitor || !isActive(monitor, now)) return null
    const { heartbeatLimit: moreHeartbeats, ...terms } = plan as PulsePlan
    const { expires_at: endsAt, created_at } = monitor
    const expiresAt = extendedEnd(endsAt, terms, now)
    if (expiresAt === null) return null
    if (extendedLimit(monitor.heartbeat_limit, moreHeartbeats) === null) return null
    const tellsAt = expiringAt({ created_at, expires_at: expiresAt })
    return {
      expiresAt,
      statements: [
        extendMonitor({ publicId, endsAt, expiresAt, moreHeartbeats, expiringAt: tellsAt, now }),
        extendBindings(publicId, expiresAt),
      ],
    }
  },
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
