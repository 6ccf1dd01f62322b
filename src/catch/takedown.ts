/** Suspending an inbox: it takes no requests, and its owner still reads what it has. */
import type { Takedown } from '../http/product.ts'
import { createInboxStore, resumeInbox, suspendInbox } from './store.ts'

export const CATCH_TAKEDOWN: Takedown = {
  kind: 'catch',
  suspend: (publicId, now) => [suspendInbox(publicId, now)],
  async resume(db, publicId) {
    const inbox = await createInboxStore(db).inbox(publicId)
    return inbox?.suspended_at ? [resumeInbox(inbox.number)] : null
  },
}
