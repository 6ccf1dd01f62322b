/**
 * 100 000 monitors, of which 1 000 miss the same deadline: how long after it the last of them is stored as late.
 * The others are pinged in time by a statement beside the service, so that their deadlines pass as they do in a
 * service that many ping.
 */
import { setTimeout as wait } from 'node:timers/promises'
import type { Db } from '../../src/db/db.ts'
import { openStore } from '../../src/db/open.ts'
import { newId } from '../../src/lib/ids.ts'
import { COUNT_EVERY_MS } from '../../src/pulse/arrivals.ts'
import { insertMonitor } from '../../src/pulse/store.ts'
import type { BenchStore, Engine } from '../engine.ts'
import { startMayflyOn } from '../program.ts'

const MONITORS = 100_000
const LATE = 1_000
/** Until the deadline that they miss: long enough for a start. */
const AHEAD_MS = 15_000
const PATIENCE_MS = 90_000
const DAY = 24 * 60 * 60 * 1000
const INTERVAL_SECONDS = 60

export async function lateRow(engine: Engine): Promise<string[]> {
  const store = await engine.newStore()
  try {
    const deadline = await fillMonitors(store)
    const mayfly = await startMayflyOn(store)
    try {
      const began = mayfly.cpuMs()
      await wait(deadline - Date.now())
      const cpuMs = mayfly.cpuMs() - began
      const storedAfter = await lastStored(store, deadline)
      return [
        `${LATE} of ${MONITORS} monitors late at once: the last stored ${storedAfter} ms after the deadline; ` +
          `CPU of the service in the ${AHEAD_MS / 1000} s before ${Math.round(cpuMs)} ms; ${mayfly.memoryMib()} MiB`,
      ]
    } finally {
      await mayfly.stop()
    }
  } finally {
    await store.remove()
  }
}

/** Returns the deadline, in unix milliseconds. */
async function fillMonitors(store: BenchStore): Promise<number> {
  const db = await openBeside(store)
  try {
    const now = Date.now()
    for (let i = 0; i < MONITORS; i += 1_000) {
      const statements = Array.from({ length: 1_000 }, () => aMonitor(now)).flat()
      await db.write({ lockKey: String(i), statements: { statements } })
    }
    // Of the others, 825 a second seem to be due, and pings have moved their deadlines.
    const deadline = Date.now() + AHEAD_MS
    const pinged = deadline - 2 * INTERVAL_SECONDS * 1000
    await db.write({
      lockKey: 'fill',
      statements: {
        healthy: sql(
          `update pulse_monitor set last_ping_at = $1 + (expires_at % 60000),
             check_at = $2 + (expires_at % 60000) * 2, accepted_heartbeat_count = 1`,
          pinged + 60_000,
          deadline - AHEAD_MS,
        ),
        late: sql(
          `update pulse_monitor set last_ping_at = $1, check_at = $2 where public_id in (
             select public_id from pulse_monitor limit ${LATE})`,
          pinged,
          deadline,
        ),
        beat: sql(
          `insert into pulse_beat (id, beat_at) values (1, $1)
           on conflict (id) do update set beat_at = excluded.beat_at`,
          Date.now(),
        ),
        counted: countedPings(Date.now()),
      },
    })
    return deadline
  } finally {
    await db.close()
  }
}

/** As the service counts pings that reach it, before and during the run: else it would think that its network is broken. */
function countedPings(now: number) {
  const from = Math.floor(now / COUNT_EVERY_MS) - 4
  const buckets = Array.from({ length: 32 }, (_, i) =>
    sql(
      'insert into pulse_arrival (slot, bucket_at, arrived_count, missed_count) values ($1, $2, $3, 0)',
      ...[(from + i) % 32, (from + i) * COUNT_EVERY_MS, 4_000],
    ),
  )
  return [sql('update pulse_beat set pinged_at = $1', now + DAY), ...buckets]
}

function aMonitor(now: number) {
  return insertMonitor({
    ...{ publicId: newId('pulse'), publicStatusId: newId('pulse_status'), planId: 'long' },
    ...{ ownerTokenHash: Buffer.alloc(32), pingTokenHash: Buffer.alloc(32) },
    ...{ heartbeatLimit: 1e6, minimumGraceSeconds: 60, expectedIntervalSeconds: INTERVAL_SECONDS },
    ...{ graceSeconds: 60, createdAt: now, checkAt: now + 9 * DAY },
    expiresAt: now + 10 * DAY + Math.floor(Math.random() * 60_000),
  })
}

async function lastStored(store: BenchStore, deadline: number): Promise<number> {
  for (;;) {
    const [row] = await store.rows('select count(*) as n from pulse_late_spell')
    const after = Date.now() - deadline
    if (Number(row?.n) >= LATE) return after
    if (after > PATIENCE_MS) throw new Error(`only ${row?.n} are stored as late`)
    await wait(100)
  }
}

function openBeside({ environment }: BenchStore): Promise<Db> {
  const url = environment.MAYFLY_DATABASE_URL ?? ''
  return url.startsWith('sqlite:')
    ? openStore({ kind: 'sqlite', file: url.slice('sqlite:'.length) })
    : openStore({ kind: 'postgres', url })
}

const sql = (text: string, ...values: number[]) => ({ text, values })
