/** Metrics of the work and memory in use, read at each scrape. */

import type { Memory } from '../http/memory.ts'
import type { Connections } from '../http/server/connections.ts'
import type { Instruments } from './instruments.ts'

export type Usage = {
  isSelling: () => boolean
  isClockHeld: () => boolean
  streams: () => ReadonlyMap<string, number>
  memory: Pick<Memory, 'bytesByKind' | 'waiting' | 'closedReaders'>
  connections: Pick<Connections, 'closed'>
  searches: () => number
}

export function watchUsage({ gaugeOf, gaugeBy, counterBy }: Instruments, usage: Usage): void {
  const { memory, connections } = usage
  gaugeOf(
    'checkout_open',
    'Whether new orders are taken: the node answers, is in sync and on its network.',
    () => (usage.isSelling() ? 1 : 0),
  )
  gaugeOf(
    'clock_held',
    'Whether the clock is held, because it jumped or the service was away.',
    () => (usage.isClockHeld() ? 1 : 0),
  )
  gaugeOf('searches', 'Searches of inboxes that run.', usage.searches)
  gaugeBy(
    'open_streams',
    'Streams of server-sent events and requests that wait for events, by route.',
    {
      label: 'route',
      read: usage.streams,
    },
  )
  gaugeBy('reserved_bytes', 'Bytes of the memory budget that are reserved, by what for.', {
    label: 'kind',
    read: () => Object.entries(memory.bytesByKind()),
  })
  gaugeOf('answers_waiting', 'Answers and streams that wait for room.', memory.waiting)
  counterBy(
    'readers_closed_total',
    'Connections that were closed: stalled, idle among too many, or the slowest where others had no room.',
    {
      label: 'reason',
      read: () => [
        ['stalled', connections.closed().stalled],
        ['idle', connections.closed().idle],
        ['room', memory.closedReaders()],
      ],
    },
  )
}
