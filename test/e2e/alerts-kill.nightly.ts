/**
 * Programs that are killed while they tell receivers of monitors: each change is told at least once, in order,
 * with a signature that the reference library verifies. On SQLite with one program, on PostgreSQL with two.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createMayfly, type PulseCapability } from '../../src/client/index.ts'
import { type AlertsSet, alerts, put } from '../support/alerts.ts'
import { temporaryFolder } from '../support/folder.ts'
import { SECRET } from '../support/instances.ts'
import { aPostgresDatabase } from '../support/postgres.ts'
import { type Program, startProgram } from '../support/program.ts'
import { aReceiver, type Receiver, verified } from '../support/receiver.ts'
import { query } from '../support/store.ts'
import { until } from '../support/until.ts'

const MONITORS = 12
const KILLS = 3
/** A claim lasts for 30 seconds by the clock of the store, which may be a little ahead. */
const CLAIM_MS = 31_000

type Told = { monitor: PulseCapability; secret: string; name: string }

for (const engine of ['SQLite', 'PostgreSQL'] as const) {
  test(`alerts survive kill -9 on ${engine}: none is lost, each is signed, and the order is kept`, async (t) => {
    const receiver = await aReceiver(t)
    const databaseUrl =
      engine === 'SQLite'
        ? `sqlite:${join(await temporaryFolder(t), 'mayfly.db')}`
        : await aPostgresDatabase()
    const start = (): Promise<Program> => aProgram(t, databaseUrl, receiver)
    const running = await Promise.all(
      Array.from({ length: engine === 'SQLite' ? 1 : 2 }, () => start()),
    )
    const first = (): Program => running[0] as Program
    const told = await Promise.all(
      Array.from({ length: MONITORS }, (_, i) => aToldMonitor(first(), receiver, `job ${i}`)),
    )
    receiver.received.length = 0

    // Each attempt fails until the last program runs, some before and some after the receiver has read it.
    let fails = true
    receiver.answer = (received, response) => {
      if (!fails) response.writeHead(204).end()
      else if (received.text.length % 2 === 0) response.destroy()
      else response.writeHead(500).end()
    }
    await lapse({ databaseUrl })
    for (let i = 0; i < KILLS; i++) {
      const seen = receiver.received.length
      await dueNow({ databaseUrl })
      await until('attempts', () => receiver.received.length > seen)
      const which = i % running.length
      await running[which]?.kill()
      await freeAll({ databaseUrl })
      running[which] = await start()
    }
    await Promise.all(told.map(({ monitor }) => pinged(first(), monitor)))
    // What was freed under a living program ends first: the order is promised to one claim at a time.
    await until('nothing is under way', async () => {
      const claimed = await query(
        { databaseUrl },
        'select 1 as one from alert_destination where due_at > $1 and due_at <= $2',
        ...[Date.now(), Date.now() + CLAIM_MS],
      )
      return claimed.length === 0
    })
    fails = false
    await until('every monitor has told both', async () => {
      await dueNow({ databaseUrl })
      return told.every((one) => answered(receiver, one).length >= 2)
    })
    for (const one of told) {
      const messages = receiver.received.filter(({ body }) => body.data?.name === one.name)
      for (const message of messages) verified(message, one.secret)
      const ids = new Map(messages.map((m) => [m.headers['webhook-id'], m.body.type]))
      assert.deepEqual([...ids.values()], ['pulse.late', 'pulse.recovered'], one.name)
      // A repeat never comes after a later message.
      const order = messages.map(({ body }) => body.type)
      assert.deepEqual(order, order.toSorted(), one.name)
    }
    for (const { monitor } of told) {
      const server = { url: first().url } as Parameters<typeof alerts>[0]
      await until('its end', async () => {
        const { deliveries } = (await alerts(server, monitor)).body
        return deliveries.every((one: { outcome: string }) => one.outcome === '2xx')
      })
    }
  })
}

const answered = ({ received }: Receiver, { name }: Told) => [
  ...new Set(
    received
      .filter(({ body }) => body.data?.name === name)
      .map(({ headers }) => headers['webhook-id']),
  ),
]

function aProgram(t: TestContext, databaseUrl: string, receiver: Receiver): Promise<Program> {
  return startProgram(t, '', {
    environment: {
      MAYFLY_DATABASE_URL: databaseUrl,
      MAYFLY_SECRET: SECRET,
      MAYFLY_RATE_LIMITS: 'off',
      MAYFLY_ALLOWED_HOSTS: receiver.host,
    },
  })
}

async function aToldMonitor(program: Program, receiver: Receiver, name: string): Promise<Told> {
  const mayfly = createMayfly({ baseUrl: program.url })
  const monitor = await mayfly.buyPulse({
    planId: 'spark',
    onInvoice: ({ bolt11 }) => program.pay(bolt11),
  })
  await mayfly.pulse(monitor).update({ name })
  const server = { url: program.url } as Parameters<typeof put>[0]
  const set = (await put(server, monitor, [{ url: receiver.url }])).body as AlertsSet
  await pinged(program, monitor)
  return { monitor, name, secret: set.destinations[0]?.secret ?? '' }
}

async function pinged({ url }: Program, { publicId, pingToken }: PulseCapability): Promise<void> {
  const response = await fetch(`${url}/p/${publicId}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${pingToken}` },
  })
  assert.equal(response.status, 204)
}

/** Every monitor's last ping was an hour ago, in which the service lived. */
async function lapse(store: { databaseUrl: string }): Promise<void> {
  await query(store, 'update pulse_monitor set last_ping_at = last_ping_at - 3600000, check_at = 1')
}

/** What waits for longer than a claim can last is due, without the pauses of the schedule and of the pace. */
async function dueNow(store: { databaseUrl: string }): Promise<void> {
  await query(
    store,
    'update alert_destination set due_at = 1, not_before = 0 where due_at > $1',
    Date.now() + CLAIM_MS,
  )
}

/** What the killed program had claimed is due again at once, as it is when the claim is over. */
async function freeAll(store: { databaseUrl: string }): Promise<void> {
  await query(store, 'update alert_destination set due_at = 1 where due_at is not null')
}
