/** A real Nostr relay on loopback, which stores its events in memory. */
import { type Event, EventRepository, EventUtils, type Filter } from '@nostr-relay/common'
import { NostrRelay } from '@nostr-relay/core'
import { type WebSocket, WebSocketServer } from 'ws'
import { freePort } from './ports.ts'

export async function startRelay() {
  const relay = new NostrRelay(new Memory())
  let server: WebSocketServer | null = null
  // Nobody else gets it while the relay is stopped.
  const port = await freePort()

  async function start(): Promise<void> {
    const opened = new WebSocketServer({ host: '127.0.0.1', port })
    await new Promise<void>((resolve) => opened.once('listening', resolve))
    opened.on('connection', (socket: WebSocket) => {
      relay.handleConnection(socket)
      socket.on('message', (data) => void relay.handleMessage(socket, JSON.parse(String(data))))
      socket.on('close', () => relay.handleDisconnect(socket))
      socket.on('error', () => socket.terminate())
    })
    server = opened
  }

  /** Cuts all connections. The clients reconnect. */
  const cut = () => {
    for (const socket of server?.clients ?? []) socket.terminate()
  }

  await start()
  return {
    url: `ws://127.0.0.1:${port}`,
    /** How many clients are connected. */
    connections: () => server?.clients.size ?? 0,
    cut,
    /** `start` starts it again at the same address. */
    async stop() {
      cut()
      const stopped = server
      if (stopped) await new Promise<void>((resolve) => stopped.close(() => resolve()))
      server = null
    },
    start,
  }
}

/** The store of the relay. */
class Memory extends EventRepository {
  private readonly events = new Map<string, Event>()

  isSearchSupported(): boolean {
    return false
  }

  upsert(event: Event): { isDuplicate: boolean } {
    const isDuplicate = this.events.has(event.id)
    this.events.set(event.id, event)
    return { isDuplicate }
  }

  find(filter: Filter): Event[] {
    const found = [...this.events.values()].filter((event) =>
      EventUtils.isMatchingFilter(event, filter),
    )
    found.sort((a, b) => b.created_at - a.created_at)
    return found.slice(0, filter.limit ?? found.length)
  }

  async destroy(): Promise<void> {}
}
