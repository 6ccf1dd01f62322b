/**
 * An owner who follows a monitor, by a live stream or by waiting for another state. The stream has each ping, and each
 * change of state as soon as its deadline passes. Each event carries the whole status, and so does the start of a
 * connection, so a client that reconnects is up to date.
 */

import { hasSameOwner } from '../http/owner-tokens.ts'
import { type EventStream, type LongPoll, POLL_EVERY_MS } from '../http/streams.ts'
import type { Clock } from '../lib/clock.ts'
import type { PulseStatus } from './schema.ts'
import type { PulseService } from './service.ts'
import type { MonitorRow } from './store.ts'

/** Streams the status until the monitor expires or is destroyed, or the client leaves. */
export async function followMonitor({
  service,
  found,
  stream,
  clock,
}: {
  service: PulseService
  found: MonitorRow
  stream: EventStream
  clock: Clock
}): Promise<void> {
  const { public_id: publicId } = found
  let sent = { state: '', data: '', count: 0 }
  while (stream.isOpen()) {
    const monitor = await service.current(publicId)
    // Without a word: it may be resumed.
    if (!monitor && (await service.isSuspended(publicId))) return
    if (!monitor) return void (await end(stream, 'destroyed'))
    // Without a word too: who has the new token comes back with that.
    if (!hasSameOwner(monitor, found)) return
    const status = await service.status(monitor)
    const { state, acceptedHeartbeatCount: count } = status
    const data = JSON.stringify(status)
    const id = String(count)
    const isPinged = sent.data !== '' && count > sent.count
    if (isPinged && !(await stream.send({ event: 'ping', data, id }))) return
    // Without a ping, it is the settings, the end or a blind window that has changed.
    if (state !== sent.state || (!isPinged && data !== sent.data)) {
      if (!(await stream.send({ event: 'state', data, id }))) return
    }
    if (state === 'expired') return void (await end(stream, state))
    sent = { state, data, count }
    const untilChange = (service.nextChangeAt(monitor) ?? Number.POSITIVE_INFINITY) - clock.now()
    await stream.wait(Math.max(1, Math.min(untilChange, POLL_EVERY_MS)))
  }
}

async function end(stream: EventStream, status: string): Promise<void> {
  await stream.send({ event: 'end', data: JSON.stringify({ status }) })
}

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
  const known =
    since === null ? current && service.standing(current).stateChangedAt : Date.parse(since)
  while (current && hasSameOwner(current, monitor)) {
    const { state, stateChangedAt } = service.standing(current)
    // An expired monitor has no other state to wait for.
    const isOver = stateChangedAt !== known || state === 'expired' || !poll.isWaiting()
    if (isOver) return service.status(current)
    const untilChange = (service.nextChangeAt(current) ?? Number.POSITIVE_INFINITY) - clock.now()
    await poll.wait(Math.max(1, Math.min(untilChange, POLL_EVERY_MS)))
    current = await service.current(publicId)
  }
  return null
}
