/** Extensions while the service is killed, and across two instances: each paid one counts, and counts once. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { createMayfly } from '../../src/client/index.ts'
import { openSqlite } from '../../src/db/sqlite/sqlite.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createSimulator } from '../../src/lightning/simulator.ts'
import { type Order, pollExtension as poll, quoteOf } from '../support/buying.ts'
import {
  EXTENDABLE,
  type Extendable,
  endIn,
  extend,
  type Held,
  repeat,
  SPARK_MS,
  statusOf,
} from '../support/extension.ts'
import { temporaryFolder } from '../support/folder.ts'
import { SECRET, twoInstances } from '../support/instances.ts'
import { hasPaid, payAt } from '../support/payer.ts'
import { aPostgresDatabase } from '../support/postgres.ts'
import { type Program, startProgram } from '../support/program.ts'
import { until } from '../support/until.ts'

type Service = { url: string }

/** An order and the key that it was opened with. */
async function quoted(service: Service, held: Held) {
  const key = randomUUID()
  return { ...quoteOf(await extend(service, held, { key })), key }
}

async function bought({ url }: Service, name: Extendable['name']): Promise<Held> {
  const mayfly = createMayfly({ baseUrl: url })
  const onInvoice = ({ bolt11 }: { bolt11: string }) => payAt(url, bolt11)
  return name === 'catch'
    ? mayfly.buyCatch({ planId: 'spark', onInvoice })
    : mayfly.buyPulse({ planId: 'spark', onInvoice })
}

/** Asserts that the plan was added this many times, and not once more. */
async function assertAdded(
  service: Service,
  { held, times, limits }: { held: Held; times: number; limits: Extendable['limits'] },
): Promise<void> {
  const status = await statusOf(service, held)
  assert.ok(status)
  const added = (Date.parse(status.expiresAt) - Date.parse(held.expiresAt)) / SPARK_MS
  assert.equal(added, times)
  for (const [name, limit] of Object.entries(limits)) {
    assert.equal(status[name as keyof typeof status], limit * (1 + times), name)
  }
}

suite('an extension whose service is killed', { timeout: 600_000 }, () => {
  async function aStore(t: TestContext) {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const start = () => startProgram(t, file, { environment: { MAYFLY_RATE_LIMITS: 'off' } })
    /** Pays at the node that is in the store, whatever runs beside it. */
    async function payAtNode(orders: { bolt11: string }[]): Promise<void> {
      const db = await openSqlite(file)
      const simulator = await createSimulator({ db, clock: systemClock })
      for (const { bolt11 } of orders) assert.equal((await simulator.pay(bolt11)).kind, 'paid')
      await db.close()
    }
    return { start, payAtNode }
  }

  for (const { name, limits } of EXTENDABLE) {
    test(`an extension of ${name} that is paid while the service is killed adds the plan once`, async (t) => {
      const { start, payAtNode } = await aStore(t)
      const first = await start()
      const held = await bought(first, name)
      const order = await quoted(first, held)
      await first.kill()
      await payAtNode([order])

      const second = await start()
      const { paymentHash, renewal } = await settledExtension(second)
      assert.deepEqual([paymentHash, renewal], [order.paymentHash, 'extended'])
      await assertAdded(second, { held, limits, times: 1 })
      // Killed before its buyer has asked.
      await second.kill()

      const third = await start()
      const end = endIn(await poll(third, order.orderId))
      assert.equal(endIn(await repeat(third, held, { key: order.key })), end)
      await assertAdded(third, { held, limits, times: 1 })
    })
  }

  test('eight paid extensions of one inbox count once each, although the service is killed between them', async (t) => {
    const { start, payAtNode } = await aStore(t)
    const first = await start()
    const held = await bought(first, 'catch')
    const orders = []
    for (let i = 0; i < 8; i++) orders.push(await quoted(first, held))
    await first.kill()
    await payAtNode(orders)

    const second = await start()
    await settledExtension(second)
    await second.kill()

    const third = await start()
    await Promise.all(
      orders.map(({ orderId }) =>
        until('it is extended', async () => (await poll(third, orderId)).status === 200),
      ),
    )
    const { limits = {} } = EXTENDABLE.find(({ name }) => name === 'catch') ?? {}
    await assertAdded(third, { held, limits, times: orders.length })
  })

  /** The first extension that it has settled. */
  const settledExtension = ({ logged }: Program) =>
    until('an extension is settled', () =>
      logged.find(({ event, renewal }) => event === 'order.settled' && renewal !== undefined),
    )
})

suite('an extension across two instances', { timeout: 600_000 }, () => {
  for (const { name, limits } of EXTENDABLE) {
    test(`twenty repeats at two instances extend ${name} once`, async (t) => {
      const fleet = await twoInstances(t, await aPostgresDatabase())
      const held = await bought(fleet.a, name)
      const order = await quoted(fleet.a, held)
      await fleet.pay(order)
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          i % 4 < 2
            ? poll(fleet.next(), order.orderId, { 'idempotency-key': order.key })
            : repeat(fleet.next(), held, { key: order.key }),
        ),
      )
      assert.equal(new Set(answers.map(endIn)).size, 1)
      for (const instance of [fleet.a, fleet.b]) {
        await assertAdded(instance, { held, limits, times: 1 })
      }
    })

    test(`extensions of one ${name} that two instances settle at once all count`, async (t) => {
      const fleet = await twoInstances(t, await aPostgresDatabase())
      const held = await bought(fleet.a, name)
      const orders = await Promise.all(Array.from({ length: 12 }, () => quoted(fleet.next(), held)))
      const ends = await Promise.all(
        orders.map(async ({ orderId, bolt11, key }) => {
          const preimage = await payAt(fleet.next().url, bolt11)
          const proof = { 'idempotency-key': key, 'payment-preimage': preimage }
          return endIn(await poll(fleet.next(), orderId, proof))
        }),
      )
      assert.equal(new Set(ends).size, orders.length)
      await assertAdded(fleet.b, { held, limits, times: orders.length })
    })
  }

  test('who follows a monitor at one instance is told that the other has extended it', async (t) => {
    const fleet = await twoInstances(t, await aPostgresDatabase())
    const monitor = await fleet.a.mayfly.buyPulse({
      planId: 'spark',
      onInvoice: ({ bolt11 }) => payAt(fleet.a.url, bolt11),
    })
    const stream = fleet.b.mayfly.pulse(monitor).stream({ signal: AbortSignal.timeout(120_000) })
    t.after(() => stream.return(''))
    const endTold = async () => {
      const { value } = await stream.next()
      return typeof value === 'object' && Date.parse(value.status.expiresAt)
    }
    await endTold()
    // By looking every 5 seconds these would take minutes.
    for (let i = 1; i <= 40; i++) {
      const order = await quoted(fleet.a, monitor)
      const preimage = await payAt(fleet.a.url, order.bolt11)
      const proof = { 'idempotency-key': order.key, 'payment-preimage': preimage }
      endIn(await poll(fleet.a, order.orderId, proof))
      assert.equal(await endTold(), Date.parse(monitor.expiresAt) + i * SPARK_MS)
    }
  })

  test('extensions that are paid while instances are killed each count once', async (t) => {
    const database = await aPostgresDatabase()
    const anInstance = () =>
      startProgram(t, '', {
        environment: {
          MAYFLY_DATABASE_URL: database,
          MAYFLY_SECRET: SECRET,
          MAYFLY_RATE_LIMITS: 'off',
        },
      })
    const running = await Promise.all([anInstance(), anInstance()])
    let turn = 0
    /** Whichever is next, alive or not: a buyer cannot know. */
    const next = (): Program => running[turn++ % running.length] as Program
    const held = await bought(next(), 'catch')
    let isOver = false

    async function killing(): Promise<void> {
      for (let i = 0; i < 3; i++) {
        await running[i % 2]?.kill()
        running[i % 2] = await anInstance()
      }
      isOver = true
    }

    async function extending(): Promise<number> {
      let times = 0
      for (; !isOver; times++) {
        const key = randomUUID()
        const order: Pick<Order, 'bolt11' | 'orderId'> = await until('a quote', async () =>
          quoteOf(await extend(next(), held, { key })),
        )
        await until('it is paid', () => hasPaid(next().url, order.bolt11))
        await until(
          'it is extended',
          async () =>
            (await poll(next(), order.orderId, { 'idempotency-key': key })).status === 200,
          { everyMs: 100 },
        )
      }
      return times
    }

    const [, ...times] = await Promise.all([killing(), ...Array.from({ length: 4 }, extending)])
    const { limits = {} } = EXTENDABLE.find(({ name }) => name === 'catch') ?? {}
    const sum = times.reduce((all, each) => all + each, 0)
    assert.ok(sum > 0)
    await assertAdded(next(), { held, limits, times: sum })
  })
})
