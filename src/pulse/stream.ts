/**
 * The owner's live view of a monitor: pings as they come, and its state as it changes, within a
 * moment of the deadline and without anybody asking. Each event carries the whole status, and a
 * connection begins with it, so a reader that comes back has missed nothing that still counts.
 */
import { type EventStream, POLL_EVERY_MS } from '../http/event-stream.ts'
import type { Clock } from '../lib/clock.ts'
import type { PulseService } from './service.ts'
import type { MonitorRow } from './store.ts'

/** Tells of the monitor until it expires, is destroyed, or the reader leaves. */
export async function followMonitor(
  service: PulseService,
  publicId: string,
  stream: EventStream,
  clock: Clock,
): Promise<void> {
  let told: MonitorRow | null = null
  let toldState: string | null = null
  while (stream.isOpen()) {
    const monitor = await service.current(publicId)
    if (!monitor) return void (await end(stream, 'destroyed'))
    const status = service.status(monitor)
    const data = JSON.stringify(status)
    const id = String(status.acceptedHeartbeatCount)
    if (told && monitor.accepted_heartbeat_count > told.accepted_heartbeat_count) {
      if (!(await stream.send({ event: 'ping', data, id }))) return
    }
    if (status.state !== toldState || monitor.settings_changed_at !== told?.settings_changed_at) {
      if (!(await stream.send({ event: 'state', data, id }))) return
    }
    if (status.state === 'expired') return void (await end(stream, status.state))
    told = monitor
    toldState = status.state
    const untilChange = (service.nextChangeAt(monitor) ?? Number.POSITIVE_INFINITY) - clock.now()
    await stream.wait(Math.max(1, Math.min(untilChange, POLL_EVERY_MS)))
  }
}

async function end(stream: EventStream, status: string): Promise<void> {
  await stream.send({ event: 'end', data: JSON.stringify({ status }) })
}
