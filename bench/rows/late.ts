/**
 * 100 000 monitors, of which 1 000 miss the same deadline: how long after it the last of them is stored as late, and
 * how long until the last alert is told, over many receivers' hosts and over a single one. The others are pinged in time by a statement beside the service, so that their deadlines pass as they do in a
 * service that many ping.
 */
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { createSealed } from '../../src/alerts/send.ts'
import { activate, insertDestination } from '../../src/alerts/store.ts'
import type { Db } from '../../src/db/db.ts'
import { openStore } from '../../src/db/open.ts'
import { newId } from '../../src/lib/ids.ts'
import { newWebhookSecret } from '../../src/protocol/webhook-signing.ts'
import { insertMonitor } from '../../src/pulse/store.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import type { BenchStore, Engine } from '../engine.ts'
import { startMayflyOn } from '../program.ts'

const MONITORS = 100_000
const LATE = 1_000
/** Until the deadline that they miss: long enough for a start. */
const AHEAD_MS = 25_000
const PATIENCE_MS = 90_000
const DAY = 24 * 60 * 60 * 1000
const INTERVAL_SECONDS = 60

/** The receivers of the alerts, by the number of their hosts. A host takes at most eight calls at once. */
const HOSTS = [0, 100, 1]
const SECRET = randomBytes(32)

export async function lateRow(engine: Engine): Promise<string[]> {
  const lines: string[] = []
  for (const hosts of HOSTS) lines.push(await lateOver(engine, hosts))
  return lines
}

/** @param hosts 0: nobody is told. */
async function lateOver(engine: Engine, hosts: number): Promise<string> {
  const store = await engine.newStore()
  const receivers = await Promise.all(Array.from({ length: hosts }, startReceiver))
  try {
    const deadline = await fillMonitors(store, receivers)
    const mayfly = await startMayflyOn(store, {
      MAYFLY_SECRET: SECRET.toString('hex'),
      MAYFLY_ALLOWED_HOSTS: receivers.map(({ host }) => host).join(','),
    })
    try {
      const began = mayfly.cpuMs()
      await wait(deadline - Date.now())
      const cpuMs = mayfly.cpuMs() - began
      const storedAfter = await passed(deadline, async () => lateIn(store))
      const told = async () => receivers.reduce((sum, { count }) => sum + count(), 0)
      const toldAfter = hosts > 0 ? await passed(deadline, told) : null
      return (
        `${LATE} of ${MONITORS} monitors late at once: the last stored ${storedAfter} ms after the deadline` +
        (toldAfter === null ? '' : `, and told after ${toldAfter} ms over ${hosts} host(s)`) +
        `; CPU of the service in the ${AHEAD_MS / 1000} s before ${Math.round(cpuMs)} ms; ${mayfly.memoryMib()} MiB`
      )
    } finally {
      await mayfly.stop()
    }
  } finally {
    for (const { stop } of receivers) stop()
    await store.remove()
  }
}

type Receiver = { host: string; count(): number; stop(): void }

/** It counts messages, not attempts: each has an id of its own. */
async function startReceiver(): Promise<Receiver> {
  const ids = new Set<unknown>()
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      ids.add(request.headers['webhook-id'])
      response.writeHead(204).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const stop = (): void => {
    server.closeAllConnections()
    server.close()
  }
  return { host: `127.0.0.1:${port}`, count: () => ids.size, stop }
}

/** Returns the deadline, in unix milliseconds. */
async function fillMonitors(store: BenchStore, receivers: readonly Receiver[]): Promise<number> {
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
          `insert into clock (id, beat_at, held_until, back_until) values (1, $1, 0, 0)
           on conflict (id) do update set beat_at = excluded.beat_at`,
          Date.now(),
        ),
      },
    })
    await fillDestinations(db, receivers)
    return deadline
  } finally {
    await db.close()
  }
}

/** Each of the late monitors tells one receiver, as if its test had been answered. */
async function fillDestinations(db: Db, receivers: readonly Receiver[]): Promise<void> {
  if (receivers.length === 0) return
  const sealed = createSealed(createSecrets([SECRET]))
  const late = await db.read<{ public_id: string }>(
    'select public_id from pulse_monitor order by last_ping_at limit $1',
    LATE,
  )
  const statements = late.flatMap(({ public_id: ownerId }, i) => {
    const id = randomBytes(16).toString('base64url')
    const { host } = receivers[i % receivers.length] as Receiver
    return [
      insertDestination({
        is_private: 0,
        destination_id: id,
        owner_id: ownerId,
        place: 0,
        format: 'standard',
        host,
        sealed_target: sealed.seal(`http://${host}/hook`, id),
        sealed_secret: sealed.seal(newWebhookSecret(), id),
      }),
      activate(id),
    ]
  })
  await db.write({ lockKey: 'fill', statements: { statements } })
}

function aMonitor(now: number) {
  return insertMonitor({
    publicId: newId('pulse'),
    publicStatusId: newId('pulse_status'),
    planId: 'long',
    ownerTokenHash: Buffer.alloc(32),
    pingTokenHash: Buffer.alloc(32),
    heartbeatLimit: 1e6,
    minimumGraceSeconds: 60,
    expectedIntervalSeconds: INTERVAL_SECONDS,
    graceSeconds: 60,
    createdAt: now,
    checkAt: now + 9 * DAY,
    expiresAt: now + 10 * DAY + Math.floor(Math.random() * 60_000),
  })
}

/** Milliseconds from the deadline until all that are late are counted. */
async function passed(deadline: number, count: () => Promise<number>): Promise<number> {
  for (;;) {
    const counted = await count()
    const after = Date.now() - deadline
    if (counted >= LATE) return after
    if (after > PATIENCE_MS) throw new Error(`only ${counted} of ${LATE}`)
    await wait(100)
  }
}

async function lateIn(store: BenchStore): Promise<number> {
  const [row] = await store.rows(
    'select count(*) as n from pulse_monitor where late_since is not null',
  )
  return Number(row?.n)
}

function openBeside({ environment }: BenchStore): Promise<Db> {
  const url = environment.MAYFLY_DATABASE_URL ?? ''
  return url.startsWith('sqlite:')
    ? openStore({ kind: 'sqlite', file: url.slice('sqlite:'.length) })
    : openStore({ kind: 'postgres', url })
}

const sql = (text: string, ...values: number[]) => ({ text, values })
