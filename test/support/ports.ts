/** Ports for the servers and nodes that this process starts. No other process gets the same. */
import { createServer, type Server } from 'node:net'

// Outgoing connections get ports from 32768 on, so they cannot take one before the server binds it.
const FIRST = 20_000
const SLICES = 300
const SLICE = 40

let slice: Promise<number> | undefined
let next = 1

/** A free port, which no other process of the tests gets while this process runs. */
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

/** For a service that is to be away: once it has stopped, no other server of the tests is found at its address. */
export const ownPort = async () => ({ MAYFLY_PORT: String(await freePort()) })

/**
 * Claims a slice of ports for this process, by keeping its first port open. Test files run in parallel, so
 * several of them could find the same port free.
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
