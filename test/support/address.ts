/** A fixed address for a server that may move: connections are passed on as they are, like to a virtual IP. */

import { connect, createServer, type Socket } from 'node:net'
import type { After } from './folder.ts'
import { serve } from './serving.ts'

/** Nothing listens there. */
export const NOWHERE = 9

export type Address = Awaited<ReturnType<typeof fixedAddress>>

export async function fixedAddress(t: After, first: number) {
  let target = first
  const open = new Map<Socket, Socket>()
  const server = createServer((incoming) => {
    const outgoing = connect(target, '127.0.0.1')
    for (const [one, other] of [
      [incoming, outgoing],
      [outgoing, incoming],
    ] as const) {
      open.set(one, other)
      one.setNoDelay(true)
      one.on('error', () => other.destroy())
      one.on('close', () => {
        open.delete(one)
        other.destroy()
      })
      one.pipe(other)
    }
  })
  const cut = (): void => {
    // Not by a reset: Node loses a socket that is reset while it ends, and its process then spins at its exit.
    for (const socket of open.keys()) socket.destroy()
  }
  return {
    port: Number(new URL(await serve(t, server)).port),
    /** New connections lead to this port, and all that lead elsewhere are cut. */
    moveTo(port: number): void {
      target = port
      cut()
    },
    /** From now on nothing gets through, and nobody is told. */
    stall(): void {
      for (const [one, other] of open) one.unpipe(other).pause()
    },
  }
}
