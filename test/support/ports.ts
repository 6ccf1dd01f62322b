/** Ports for the servers and nodes that this process starts, and nobody else's. */
import { createServer, type Server } from 'node:net'

// Below 32768 no outgoing connection is given the port between our look and the server's bind.
const FIRST = 20_000
const SLICES = 300
const SLICE = 40

let slice: Promise<number> | undefined
let next = 1

/** A port that is free, and that no other process of the tests gets while this one lives. */
export async function freePort(): Promise<number> {
  slice ??= claimSlice()
  const first = await slice
  for (let attempt = 1; attempt < SLICE; attempt++) {
    const port = first + next
    next = (next % (SLICE - 1)) + 1
    const probe = await listening(port)
    if (!probe) continue
    await new Promise((resolve) => probe.close(resolve))
    return port
  }
  throw new Error('no port is free')
}

/**
 * The first port of a slice is held open for as long as this process lives, and with it the slice:
 * test files run side by side, and a look at a port says nothing about who else has just looked.
 */
async function claimSlice(): Promise<number> {
  for (let attempt = 0; attempt < SLICES; attempt++) {
    const first = FIRST + ((process.pid + attempt) % SLICES) * SLICE
    const guard = await listening(first)
    if (!guard) continue
    guard.unref()
    return first
  }
  throw new Error('no ports are free')
}

function listening(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', () => resolve(undefined))
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}
