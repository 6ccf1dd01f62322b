/** Ends the work for a request when its client disconnects. */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/** The work under way, by connection: one listener each, however many requests are pipelined on it. */
const underWay = new WeakMap<Socket, Set<AbortController>>()

/** Runs work with a signal that is aborted when the connection of the request closes. */
export async function withDisconnectSignal<T>(
  { socket }: IncomingMessage,
  work: (disconnected: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  if (socket.destroyed) controller.abort()
  const controllers = underWay.get(socket) ?? watch(socket)
  controllers.add(controller)
  try {
    return await work(controller.signal)
  } finally {
    controllers.delete(controller)
  }
}

function watch(socket: Socket): Set<AbortController> {
  const controllers = new Set<AbortController>()
  underWay.set(socket, controllers)
  socket.once('close', () => {
    for (const controller of controllers) controller.abort()
  })
  return controllers
}
