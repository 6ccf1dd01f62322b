/** The status of a monitor for an owner who waits for another state. */
import { POLL_EVERY_MS } from '../http/event-stream.ts'
import type { LongPoll } from '../http/long-poll.ts'
import type { Clock } from '../lib/clock.ts'
import type { PulseStatus } from './schema.ts'
import type { PulseService } from './service.ts'
import type { MonitorRow } from './store.ts'

/**
 * Waits until the state began at another time than `since`, and resolves to the status as it is then, or when
 * the time is over. Null if the monitor was destroyed meanwhile.
 * @param since RFC 3339. Null: the beginning of the state as it is now.
 */
export async function awaitedStatus(
  monitor: MonitorRow,
  {
    since,
    poll,
    service,
    clock,
  }: { since: string | null; poll: LongPoll; service: PulseService; clock: Clock },
): Promise<PulseStatus | null> {
  const { public_id: publicId } = monitor
  let current = await service.current(publicId)
  const known = since === null ? current && service.status(current).stateChangedAt : since
  while (current) {
    const status = service.status(current)
    const isKnown = known !== null && Date.parse(status.stateChangedAt) === Date.parse(known)
    // An expired monitor has no other state to wait for.
    if (!isKnown || status.state === 'expired' || !poll.isWaiting()) return status
    const untilChange = (service.nextChangeAt(current) ?? Number.POSITIVE_INFINITY) - clock.now()
    await poll.wait(Math.max(1, Math.min(untilChange, POLL_EVERY_MS)))
    current = await service.current(publicId)
  }
  return null
}
