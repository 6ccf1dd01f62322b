/** Places for connections: each holds one at a time, and takes a new one when that was lost. */
import { setTimeout as wait } from 'node:timers/promises'
import { StoreError } from './db.ts'
import type { Connection } from './postgres-connection.ts'
import { storeError } from './postgres-errors.ts'

export type Lane = {
  /** The lane's connection, or a fresh one. @throws StoreError when there is none to be had. */
  connection(): Promise<Connection>
  /** The next use begins on a fresh connection. */
  drop(): void
  end(): Promise<void>
}

/** A restart of the server is waited for this long, by whoever is under way. */
const RECONNECT_WITHIN_MS = 3_000
const RECONNECT_EVERY_MS = 100

/** All lanes of one store, which know together whether the server is away. */
export function createLanes(connect: () => Promise<Connection>): { lane(): Lane } {
  /** Once one has waited in vain, the others fail at once until a connection is made again. */
  let isAway = false

  async function reconnect(): Promise<Connection> {
    const deadline = Date.now() + (isAway ? 0 : RECONNECT_WITHIN_MS)
    for (;;) {
      try {
        const connection = await connect()
        isAway = false
        return connection
      } catch (error) {
        if (Date.now() >= deadline) {
          isAway = true
          throw error instanceof StoreError ? error : storeError(error)
        }
        await wait(RECONNECT_EVERY_MS)
      }
    }
  }

  return {
    lane() {
      let current: Connection | null = null
      return {
        async connection() {
          if (!current?.isOpen()) current = await reconnect()
          return current
        },
        drop() {
          current?.drop()
          current = null
        },
        async end() {
          const last = current
          current = null
          if (last?.isOpen()) await last.end()
        },
      }
    },
  }
}
