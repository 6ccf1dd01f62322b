/** The state of an inbox. */
import type { CatchState } from './schema.ts'
import type { InboxRow } from './store.ts'

/** manually_destroyed > expired > suspended > exhausted > active. */
export function stateOf(inbox: InboxRow, now: number): CatchState {
  if (inbox.destroyed_at !== null) return 'manually_destroyed'
  if (inbox.expires_at <= now) return 'expired'
  if (inbox.suspended_at !== null) return 'suspended'
  if (inbox.accepted_request_count >= inbox.request_limit) return 'exhausted'
  return 'active'
}
