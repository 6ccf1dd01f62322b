/** Metrics of the work and memory in use, read at each scrape. */
import type { Connections } from '../http/connections.ts'
import type { ResponseBudget } from '../http/response-budget.ts'
import type { Instruments } from './instruments.ts'

export type Usage = {
  isSelling: () => boolean
  isDeletionHeld: () => boolean
  streams: () => ReadonlyMap<string, number>
  bodies: () => { bodies: number; bytes: number }
  responseBudget: Pick<ResponseBudget, 'reservedBytes' | 'waiting' | 'closedReaders'>
  connections: Pick<Connections, 'closed'>
  searches: () => { running: number; waiting: number }
  purchaseBytes: () => Record<string, number>
}

export function watchUsage(instruments: Instruments, usage: Usage): void {
  const { gaugeOf, gaugeBy } = instruments
  gaugeOf(
    'checkout_open',
    'Whether new orders are taken: the node answers, is in sync and on its network.',
    () => (usage.isSelling() ? 1 : 0),
  )
  gaugeOf(
    'deletion_held',
    'Whether deletion is held back now, because the clock is doubted.',
    () => (usage.isDeletionHeld() ? 1 : 0),
  )
  gaugeBy('searches', 'Searches of inboxes that run, and that wait for one of the same inbox.', {
    label: 'state',
    read: () => Object.entries(usage.searches()),
  })
  watchRequests(instruments, usage)
  watchResponses(instruments, usage)
}

function watchRequests({ gaugeOf, gaugeBy }: Instruments, usage: Usage): void {
  gaugeOf(
    'ingest_bodies',
    'Requests to inboxes that are read or stored now.',
    () => usage.bodies().bodies,
  )
  gaugeOf(
    'ingest_body_bytes',
    'What they hold in memory, and what is set aside for the rest of them.',
    () => usage.bodies().bytes,
  )
  gaugeBy('purchase_body_bytes', 'What the bodies of purchases hold in memory, by room.', {
    label: 'room',
    read: () => Object.entries(usage.purchaseBytes()),
  })
}

function watchResponses({ gaugeOf, gaugeBy, counterBy }: Instruments, usage: Usage): void {
  const { responseBudget, connections } = usage
  gaugeBy(
    'open_streams',
    'Streams of server-sent events and requests that wait for events, by route.',
    {
      label: 'route',
      read: usage.streams,
    },
  )
  gaugeOf(
    'answer_bytes_held',
    'Bytes that answers and streams hold until their readers take them.',
    responseBudget.reservedBytes,
  )
  gaugeOf('answers_waiting', 'Answers and streams that wait for room.', responseBudget.waiting)
  counterBy(
    'readers_closed_total',
    'Connections that were closed: stalled, idle among too many, or the slowest where others had no room.',
    {
      label: 'reason',
      read: () => [
        ['stalled', connections.closed().stalled],
        ['idle', connections.closed().idle],
        ['room', responseBudget.closedReaders()],
      ],
    },
  )
}
