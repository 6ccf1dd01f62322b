/**
 * An owner who follows a monitor, by a live stream or by waiting for another state. The stream has each ping, and each
 * change of state as soon as its deadline passes. Each event carries the whole status, and so does the start of a
 * connection, so a client that reconnects is up to date.
 */

import { type EventStream, type LongPoll, POLL_EVERY_MS } from '../http/streams.ts'
import type { Clock } from '../lib/clock.ts'
import type { PulseStatus } from './schema.ts'
import type { PulseService } from './service.ts'
import type { MonitorRow } from './store.ts'

/** Streams the status until the monitor expires or is destroyed, or the client leaves. */
export async function followMonitor({
  service,
  publicId,
  stream,
  clock,
}: {
  service: PulseService
  publicId: string
  stream: EventStream
  clock: Clock
}): Promise<void> {
  let sent: MonitorRow | null = null
  let sentState: string | null = null
  while (stream.isOpen()) {
    const monitor = await service.current(publicId)
    // Without a word: it may be resumed.
    if (!monitor && (await service.isSuspended(publicId))) return
    if (!monitor) return void (await end(stream, 'destroyed'))
    const status = await service.status(monitor)
    const data = JSON.stringify(status)
    const id = String(status.acceptedHeartbeatCount)
    if (sent && monitor.accepted_heartbeat_count > sent.accepted_heartbeat_count) {
      if (!(await stream.send({ event: 'ping', data, id }))) return
    }
    if (status.state !== sentState || hasOtherSettings(monitor, sent)) {
      if (!(await stream.send({ event: 'state', data, id }))) return
    }
    if (status.state === 'expired') return void (await end(stream, status.state))
    sent = monitor
    sentState = status.state
    const untilChange = (service.nextChangeAt(monitor) ?? Number.POSITIVE_INFINITY) - clock.now()
    await stream.wait(Math.max(1, Math.min(untilChange, POLL_EVERY_MS)))
  }
}

/** A schedule counts from its own time, and an extension is a change, too. */
const hasOtherSettings = (monitor: MonitorRow, sent: MonitorRow | null): boolean =>
  monitor.expires_at !== sent?.expires_at ||
  monitor.settings_changed_at !== sent.settings_changed_at ||
  monitor.rescheduled_at !== sent.rescheduled_at

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
  while (current) {
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
