/**
 * Bounds what connections hold beside answers: heads that were sent in part, and requests that are pipelined. Node
 * itself ends the time of a connection that has stalled.
 */
import { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { largestNetwork } from '../client-address.ts'

/**
 * Connections without a request under way, of one network and in all. Each may hold a head of 32 KiB that was sent
 * in part, which is 40 KiB of memory.
 */
const MAX_IDLE = { perNetwork: 256, inAll: 4096 }
/**
 * Requests that may wait on one connection behind an earlier response. Clients that pipeline at all send
 * a few; a connection with more is closed.
 */
const MAX_PIPELINED = 64

type Connection = {
  /** Null if all clients may share it. */
  network: string | null
  /** Requests whose response has not ended. */
  underWay: number
  /** The response to the latest request. */
  last: FastifyReply['raw'] | null
  waiting: number
}

export type Connections = ReturnType<typeof createConnections>

/** @param options.networkOf the network of a peer; null for a proxy, and for this machine, whose bound is the total. */
export function createConnections({
  networkOf = () => null,
  maxIdle = MAX_IDLE,
}: {
  networkOf?: (peer: string) => string | null
  maxIdle?: typeof MAX_IDLE
} = {}) {
  const connections = new Map<Socket, Connection>()
  /** By network the connections without a request under way, the oldest first. */
  const idle = new Map<string | null, Set<Socket>>()
  let idleInAll = 0
  const closed = { stalled: 0, idle: 0 }

  function beIdle(socket: Socket, network: string | null): void {
    const ofNetwork = idle.get(network) ?? new Set()
    idle.set(network, ofNetwork.add(socket))
    idleInAll++
    if (network !== null && ofNetwork.size > maxIdle.perNetwork) closeOldest(ofNetwork)
    if (idleInAll <= maxIdle.inAll) return
    const sizes = Array.from(idle, ([name, { size }]) => [name ?? '', size] as const)
    closeOldest(idle.get(largestNetwork(sizes) || null) ?? ofNetwork)
  }

  function beBusy(socket: Socket, network: string | null): void {
    const ofNetwork = idle.get(network)
    if (!ofNetwork?.delete(socket)) return
    idleInAll--
    if (ofNetwork.size === 0) idle.delete(network)
  }

  function closeOldest(sockets: Set<Socket>): void {
    const [oldest] = sockets
    const connection = oldest && connections.get(oldest)
    if (!connection) return
    beBusy(oldest, connection.network)
    closed.idle++
    oldest.destroy()
  }

  /** Must be mounted before all other hooks, so that a request that has to wait causes no work. */
  function mount(app: FastifyInstance): void {
    app.server.on('connection', (socket) => {
      // A request of this process to itself has a stream of another kind.
      if (!(socket instanceof Socket)) return
      const network = networkOf(socket.remoteAddress ?? '')
      connections.set(socket, { network, last: null, underWay: 0, waiting: 0 })
      beIdle(socket, network)
      socket.once('close', () => {
        connections.delete(socket)
        beBusy(socket, network)
      })
    })

    app.server.prependListener('request', ({ socket }, response) => {
      const connection = connections.get(socket)
      if (!connection) return
      if (connection.underWay++ === 0) beBusy(socket, connection.network)
      response.once('close', () => {
        if (--connection.underWay === 0 && connections.has(socket)) {
          beIdle(socket, connection.network)
        }
      })
    })

    app.addHook('onRequest', (request, reply, done) => {
      const { socket } = request.raw
      const connection = connections.get(socket)
      if (!connection) return done()
      const before = connection.last
      connection.last = reply.raw
      if (before === null || before.writableFinished || before.destroyed) return done()
      if (++connection.waiting > MAX_PIPELINED) {
        socket.destroy()
        return
      }
      before.once('close', () => {
        connection.waiting--
        // On a closed connection nobody waits for the response.
        if (!socket.destroyed) done()
      })
    })

    app.server.on('timeout', (socket) => {
      const isStalled = socket.writableLength > 0
      // What is silent because its answer is still being made, such as a wait, goes on.
      if (!isStalled && connections.get(socket)?.underWay) return
      // The time to wait for another request ends so, too.
      if (isStalled) closed.stalled++
      socket.destroy()
    })
  }

  return {
    mount,
    /** The open connections of the server. */
    sockets: (): Iterable<Socket> => connections.keys(),
    /** How many were closed because their reader had stalled, or to bound those without a request. */
    closed: (): Readonly<typeof closed> => closed,
  }
}
