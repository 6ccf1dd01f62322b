/** Inboxes as destinations of this service's own alerts: proven once by their token, then under all their limits. */
import type { Inboxes } from '../alerts/send.ts'
import type { Limits } from '../http/limits.ts'
import { INGEST } from './limits.ts'
import type { CatchService } from './service.ts'

/** An alert comes from this service itself. */
const OWN_ADDRESS = '127.0.0.1'

export function createInboxes({
  service,
  limits,
}: {
  service: CatchService
  limits: Limits
}): Inboxes {
  return {
    admits: service.isSender,

    async deliver({ inboxId, tokenHash }, { headers: rawHeaders, body }) {
      const inbox = await service.facts(inboxId)
      if (!inbox || body.length > inbox.maxBytesPerRequest) return false
      if (!(await limits.admits(INGEST[inbox.planId], inboxId))) {
        service.refused(inbox, 'rate_limited')
        return false
      }
      const stored = await service.ingest(inbox, {
        token: null,
        tokenHash: Buffer.from(tokenHash, 'hex'),
        method: 'POST',
        path: '',
        query: '',
        rawHeaders,
        body,
        sourceIp: OWN_ADDRESS,
        isProxied: false,
      })
      return stored !== null
    },
  }
}
