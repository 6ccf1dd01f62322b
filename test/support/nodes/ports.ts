/** Ports for the nodes of this process. */
import { createServer } from 'node:net'

// Below 32768 no outgoing connection is given the port between our look and the node's bind.
const FIRST = 20_000
const SLICES = 300
const SLICE = 40

// Test files run side by side, and processes started together have pids close to each other.
let next = FIRST + (process.pid % SLICES) * SLICE

export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < SLICES * SLICE; attempt++) {
    const port = next
    next = next + 1 < FIRST + SLICES * SLICE ? next + 1 : FIRST
    if (await isFree(port)) return port
  }
  throw new Error('no port is free')
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
