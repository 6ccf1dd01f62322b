/** Connection slots: each holds one connection, and opens another when that one is lost. */
import { setTimeout as wait } from 'node:timers/promises'
import { StoreError } from '../db.ts'
import type { Connection } from './connection.ts'
import { storeError } from './errors.ts'

export type Slot = {
  /** The slot's connection, or a new one. @throws StoreError when the server cannot be reached. */
  connection(): Promise<Connection>
  /** The next use opens a new connection. */
  drop(): void
  end(): Promise<void>
}

/** How long the units under way wait for a server that restarts. */
const RECONNECT_WITHIN_MS = 3_000
const RECONNECT_EVERY_MS = 100

/** The slots of one store. They share whether the server is away. */
export function createSlots(connect: () => Promise<Connection>): { slot(): Slot } {
  /** After one slot has waited in vain, the others fail at once until a connection succeeds. */
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
    slot() {
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
