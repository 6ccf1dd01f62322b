/** What the owner of a monitor is told of its changes, and in which words. */

import type { Alert } from '../alerts/store.ts'
import type { AlertContent } from '../lib/alert-formats.ts'
import { rfc3339, rfc3339Seconds } from '../lib/clock.ts'
import type { MonitorRow } from './store.ts'
import type { ChangeType, PulseChange } from './transition.ts'

/** What a change says to the destinations, or null if it says nothing to them. */
export function alertOf(change: PulseChange): Alert | null {
  const words = WORDS[change.type]
  if (!words) return null
  const { at: occurredAt, opensAt, monitor } = change
  const { last_ping_at: lastPingAt } = monitor
  const name = nameOf(monitor)
  const content: AlertContent = {
    data: {
      name,
      state: change.state,
      since: rfc3339(change.since),
      lastPingAt: lastPingAt === null ? null : rfc3339(lastPingAt),
      ...(change.type === 'failed' ? { exitCode: monitor.exit_code } : {}),
    },
    title: `${name === '' ? 'A monitor' : name} ${words.title(change)}`,
    text: words.text(change),
    isUrgent: words.isUrgent,
  }
  const alert: Alert = {
    type: `pulse.${change.type}`,
    occurredAt,
    replaces: words.isState,
    content,
  }
  if (opensAt === null) return alert
  // It betrays that a secret waits, so only destinations get it whose owner asked for it.
  const text = `${content.text} What waits for its silence opens at ${rfc3339Seconds(opensAt)}, unless a ping comes.`
  const data = { ...content.data, opensAt: rfc3339(opensAt) }
  return { ...alert, privateContent: { ...content, data, text } }
}

/** What a test says. */
export function testAlert(monitor: MonitorRow): AlertContent {
  const name = nameOf(monitor)
  return {
    data: { name },
    title: `${name === '' ? 'A monitor' : name}: test`,
    text: 'This destination will be alerted when the state of the monitor changes.',
    isUrgent: false,
  }
}

type Words = {
  isState: boolean
  isUrgent: boolean
  title(change: PulseChange): string
  text(change: PulseChange): string
}

const lastPing = ({ monitor: { last_ping_at: at } }: PulseChange): string =>
  at === null ? 'There was no ping.' : `The last ping was at ${rfc3339Seconds(at)}.`

const WORDS: Partial<Record<ChangeType, Words>> = {
  late: {
    isState: true,
    isUrgent: true,
    title: () => 'is late',
    text: (change) => `No ping came in time. ${lastPing(change)}`,
  },
  recovered: {
    isState: true,
    isUrgent: false,
    title: () => 'is back',
    text: lastPing,
  },
  failed: {
    isState: true,
    isUrgent: true,
    title: ({ monitor: { exit_code: code } }) =>
      code === null ? 'failed' : `failed with code ${code}`,
    text: (change) => `A run reported a failure. ${lastPing(change)}`,
  },
  exhausting: {
    isState: false,
    isUrgent: false,
    title: () => 'has few pings left',
    text: () => 'A tenth of its pings is left.',
  },
  exhausted: {
    isState: true,
    isUrgent: true,
    title: () => 'has no pings left',
    text: (change) => `It accepts no more pings. ${lastPing(change)}`,
  },
  expiring: {
    isState: false,
    isUrgent: false,
    title: () => 'ends soon',
    text: ({ monitor }) => `It ends at ${rfc3339Seconds(monitor.expires_at)}.`,
  },
}

const nameOf = ({ name }: MonitorRow): string => Buffer.from(name).toString('utf8')
