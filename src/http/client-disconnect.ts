/** Whether the client of a request is still there: what nobody waits for any more need not be done. */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/** One listener for each connection, however many requests lie on it at once. */
const waiting = new WeakMap<Socket, Set<AbortController>>()

/** Does work that is given a signal, which is aborted when the connection of the request closes. */
export async function withDisconnectSignal<T>(
  { socket }: IncomingMessage,
  work: (gone: AbortSignal) => Promise<T>,
): Promise<T> {
  const gone = new AbortController()
  if (socket.destroyed) gone.abort()
  const others = waiting.get(socket) ?? watch(socket)
  others.add(gone)
  try {
    return await work(gone.signal)
  } finally {
    others.delete(gone)
  }
}

function watch(socket: Socket): Set<AbortController> {
  const all = new Set<AbortController>()
  waiting.set(socket, all)
  socket.once('close', () => {
    for (const one of all) one.abort()
  })
  return all
}
