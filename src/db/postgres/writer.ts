/**
 * Group commit: units that arrive while a batch is being written share the next transaction. All use one
 * connection, so that they wait for each other here and not for each other's locks. Only large
 * units have a second connection.
 */
import { coalesce } from '../coalesce.ts'
import { type Answer, type Statement, StoreAway, type Unit } from '../db.ts'
import { byName, inARow } from '../unit.ts'
import { type Job, runBatch } from './batch.ts'
import type { Slot } from './sessions.ts'

/** A commit stays short: its first unit waits for its last. */
const UNITS_IN_BATCH = 256
const STATEMENTS_IN_BATCH = 1_024
const BYTES_IN_BATCH = 1024 * 1024
/** Units of this size use the second connection, so that small ones do not wait for their bytes. */
const LARGE_BYTES = 512 * 1024
/** Above these limits a unit is refused: its caller would time out before its turn. */
const MAX_WAITING_UNITS = 10_000
const MAX_WAITING_BYTES = 256 * 1024 * 1024

type Waiting = Job & { bytes: number }
type Queue = { slot: Slot; waiting: Waiting[]; isBusy: boolean; schedule: () => void }

export function createWriter(slots: { small: Slot; large: Slot }) {
  const queueOf = (slot: Slot): Queue => {
    const schedule = coalesce(() => void work(queue))
    const queue: Queue = { slot, waiting: [], isBusy: false, schedule }
    return queue
  }
  const small = queueOf(slots.small)
  const large = queueOf(slots.large)
  const queues = [small, large]
  let waitingUnits = 0
  let waitingBytes = 0
  const wakeups: (() => void)[] = []

  function add(waiting: Waiting): void {
    const queue = waiting.bytes >= LARGE_BYTES ? large : small
    queue.waiting.push(waiting)
    waitingUnits++
    waitingBytes += waiting.bytes
    if (!queue.isBusy) queue.schedule()
  }

  async function work(queue: Queue): Promise<void> {
    if (queue.isBusy) return
    queue.isBusy = true
    while (queue.waiting.length > 0) {
      const batch = queue.waiting.splice(0, batchLength(queue.waiting))
      waitingUnits -= batch.length
      for (const { bytes } of batch) waitingBytes -= bytes
      await runBatch(queue.slot, batch.sort(byLockKey))
    }
    queue.isBusy = false
    for (const wake of wakeups.splice(0)) wake()
  }

  return {
    write: (unit: Unit): Promise<Answer> =>
      new Promise((resolve, reject) => {
        const statements = inARow(unit.statements)
        if (statements.length === 0) return resolve(byName(unit.statements, null))
        const bytes = sizeOf(statements)
        if (waitingUnits >= MAX_WAITING_UNITS || waitingBytes + bytes > MAX_WAITING_BYTES) {
          return reject(new StoreAway('too many writes are waiting'))
        }
        add({ unit, statements, resolve, reject, bytes })
      }),
    async idle(): Promise<void> {
      while (queues.some(({ isBusy, waiting }) => isBusy || waiting.length > 0)) {
        await new Promise<void>((resume) => wakeups.push(resume))
      }
    },
    async end(): Promise<void> {
      await Promise.all(queues.map(({ slot }) => slot.end()))
    },
  }
}

/** All instances take the locks of a batch in this order. Units with the same key stay in order of arrival. */
function byLockKey({ unit: { lockKey: a } }: Job, { unit: { lockKey: b } }: Job): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function batchLength(waiting: Waiting[]): number {
  let statements = 0
  let bytes = 0
  const cut = waiting.findIndex((one, place) => {
    statements += one.statements.length
    bytes += one.bytes
    return place > 0 && (statements > STATEMENTS_IN_BATCH || bytes > BYTES_IN_BATCH)
  })
  return Math.min(cut === -1 ? waiting.length : cut, UNITS_IN_BATCH)
}

function sizeOf(statements: Statement[]): number {
  let bytes = 0
  for (const { values } of statements) {
    for (const value of values) {
      if (typeof value === 'string' || value instanceof Uint8Array) bytes += value.length
    }
  }
  return bytes
}
