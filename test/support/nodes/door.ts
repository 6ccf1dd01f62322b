/** A port in front of another port. It accepts connections only while it is open. */
import { connect, createServer, type Socket } from 'node:net'
import { freePort } from '../ports.ts'

/** The door is closed at first. It does not keep the process alive. */
export async function createDoor(to: number) {
  const port = await freePort()
  const sockets = new Set<Socket>()
  let isOpen = false

  function keep(socket: Socket, other: Socket): void {
    sockets.add(socket)
    socket.unref()
    socket.on('error', () => {})
    socket.on('close', () => {
      sockets.delete(socket)
      other.destroy()
    })
  }

  const server = createServer((incoming) => {
    if (!isOpen) return incoming.destroy()
    const outgoing = connect(to, '127.0.0.1')
    keep(incoming, outgoing)
    keep(outgoing, incoming)
    incoming.pipe(outgoing).pipe(incoming)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve())
  })
  server.unref()

  return {
    port,
    open() {
      isOpen = true
    },
    /** Closes the door, and ends its connections. */
    close() {
      isOpen = false
      for (const socket of sockets) socket.destroy()
    },
  }
}
