/** Provisions CATCH: an inbox for a settled order. */
import { rfc3339 } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import {
  extendedEnd,
  extendedLimit,
  type Grant,
  type Provisioning,
} from '../payment/provisioning.ts'
import { tokenFromSeed, tokenHash } from '../secrets/tokens.ts'
import type { CatchCapability, CatchPlan } from './schema.ts'
import { createInboxStore, extendInbox, insertInbox, stateOf } from './store.ts'

export const CATCH_PROVISIONING: Provisioning = {
  newPublicId: () => newId('catch'),
  provision(grant) {
    const plan = grant.plan as CatchPlan
    const { ownerToken, ingestToken } = capability(grant)
    return insertInbox({
      publicId: grant.publicId,
      planId: grant.planId,
      ownerTokenHash: tokenHash(ownerToken),
      ingestTokenHash: tokenHash(ingestToken),
      requestLimit: plan.requestLimit,
      storageLimitBytes: plan.storageLimitBytes,
      maxBytesPerRequest: plan.maxBytesPerRequest,
      createdAt: grant.settledAt,
      expiresAt: grant.expiresAt,
    })
  },
  capability,
  async extend(db, { publicId, plan, now }) {
    const inbox = await createInboxStore(db).inbox(publicId)
    if (!inbox || stateOf(inbox, now) !== 'active') return null
    const { requestLimit, storageLimitBytes, ...terms } = plan as CatchPlan
    const expiresAt = extendedEnd(inbox.expires_at, terms, now)
    if (expiresAt === null) return null
    if (extendedLimit(inbox.request_limit, requestLimit) === null) return null
    if (extendedLimit(inbox.storage_limit_bytes, storageLimitBytes) === null) return null
    const statement = extendInbox({
      number: inbox.number,
      endsAt: inbox.expires_at,
      expiresAt,
      moreRequests: requestLimit,
      moreBytes: storageLimitBytes,
      now,
    })
    return { expiresAt, statements: [statement] }
  },
}

function capability(grant: Grant): CatchCapability {
  return {
    product: 'catch',
    publicId: grant.publicId,
    ownerToken: tokenFromSeed('catch_owner', grant.seed),
    ingestToken: tokenFromSeed('catch_ingest', grant.seed),
    expiresAt: rfc3339(grant.expiresAt),
  }
}
