/** Who gets a place, and how often a message is tried. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createDelivery } from '../../src/alerts/delivery.ts'
import type { Attempt } from '../../src/alerts/send.ts'
import { activate, createAlertStore, insertAlert, MAX_WAITING } from '../../src/alerts/store.ts'
import { StoreAway } from '../../src/db/db.ts'
import type { After } from '../support/folder.ts'
import { anAlert, aStore, destination, MINUTE, NOW } from '../support/outbox.ts'
import { unit } from '../support/unit.ts'
import { until } from '../support/until.ts'

/** Of the 256 attempts at once, a third is left to first attempts. */
const REPEATS_AT_ONCE = 170

test('repeats that wait for a place never hide a first attempt, however many there are', async (t) => {
  const called: string[] = []
  const { db, add, delivery } = await aDelivery(t, (destinationId) => {
    called.push(destinationId)
    return new Promise(() => {})
  })
  for (let i = 0; i < 700; i++) await add(`old ${i}`)
  await db.write(unit({ text: 'update alert_destination set attempts = 1', values: [] }))
  await add('new', NOW + 1)
  await delivery(NOW + MINUTE).turn()
  // All that were started: none of them may still use the store when the test closes it.
  const started = () => called.length === REPEATS_AT_ONCE + 1
  await until('as many repeats as have a place, and the first attempt', started)
  assert.ok(called.includes('new'))
})

test('a host has eight attempts at once, an owner one of them, and other hosts their own', async (t) => {
  const called: string[] = []
  const { add, delivery } = await aDelivery(t, (destinationId) => {
    called.push(destinationId)
    return new Promise(() => {})
  })
  for (let i = 0; i < 10; i++) await add(`busy ${i}`, NOW, { host: 'busy:443' })
  for (let i = 0; i < 2; i++)
    await add(`own ${i}`, NOW, { ownerId: 'one', host: 'own:443', place: i })
  await add('last', NOW + 1)
  const one = delivery(NOW + MINUTE)
  await Promise.all([one.turn(), one.turn()])
  await until('eight of a host, one of an owner, and the last', () => called.length === 10)
  await one.turn()
  await add('later')
  await one.turn()
  await until('the later', () => called.includes('later'))
  const busy = Array.from({ length: 8 }, (_, i) => `busy ${i}`)
  assert.deepEqual(called.toSorted(), [...busy, 'last', 'later', 'own 0'])
})

test('a message that takes the place of one that gave way is tried as often as any other', async (t) => {
  const { db, add, tell, delivery } = await aDelivery(t, async () => FAILED)
  await add('one')
  let now = NOW
  for (const pause of [5_000, 5 * MINUTE]) {
    const one = delivery(now)
    await one.turn()
    await one.idle()
    now += pause
  }
  for (let i = 0; i < MAX_WAITING; i++) await tell('owner of one', NOW + MINUTE)
  const one = delivery(now)
  await one.turn()
  await one.idle()
  const [destination] = await createAlertStore(db).ofOwner('owner of one')
  assert.equal(destination?.due_at, now + 5_000)
  const [first] = await createAlertStore(db).waiting('one')
  assert.deepEqual([first?.position, first?.attempts], [2, 1])
})

test('a message is not sent before its time, and one that is early for its turn waits for it', async (t) => {
  const called: number[] = []
  let now = NOW
  const { db, add, tell, delivery } = await aDelivery(t, async () => {
    called.push(now)
    return { ...FAILED, outcome: '2xx' }
  })
  await add('one')
  await tell('owner of one', NOW, NOW + 2 * MINUTE)
  for (const ms of [0, MINUTE, MINUTE - 1, 1, MINUTE]) {
    now += ms
    const one = delivery(now)
    await one.turn()
    await one.idle()
  }
  assert.deepEqual(called, [NOW, NOW + 2 * MINUTE])
  const [destination] = await createAlertStore(db).ofOwner('owner of one')
  assert.equal(destination?.due_at, null)
})

test('a destination that was told rests for a minute, and then is told the last state alone', async (t) => {
  let sent = 0
  const { db, add, tell, delivery } = await aDelivery(t, async () => {
    sent++
    return { ...FAILED, outcome: '2xx' }
  })
  await add('one')
  const sentAt: number[] = []
  for (const now of [NOW, NOW + 1, NOW + MINUTE - 1, NOW + MINUTE, NOW + 9 * MINUTE]) {
    const one = delivery(now)
    await one.turn()
    await one.idle()
    if (now === NOW) for (const ms of [1, 2, 3]) await tell('owner of one', NOW + ms)
    sentAt.push(sent)
  }
  assert.deepEqual(sentAt, [1, 1, 1, 2, 2])
  assert.deepEqual(await createAlertStore(db).waiting('one'), [])
})

test('the end of an attempt and the next turn of its destination are stored together, or neither', async (t) => {
  for (const lasts of [1, 2]) {
    const { db, add, delivery } = await aDelivery(t, async () => FAILED)
    await add('one')
    let written = 0
    const one = delivery(NOW, {
      db: {
        ...db,
        write: (some) =>
          written++ < lasts ? db.write(some) : Promise.reject(new StoreAway('killed')),
      },
      log: { info() {}, warn() {}, error() {} },
    })
    await one.turn()
    await one.idle()
    const [destination] = await createAlertStore(db).ofOwner('owner of one')
    const [alert] = await createAlertStore(db).waiting('one')
    assert.equal(destination?.attempts, lasts - 1)
    assert.equal(alert?.attempts, lasts - 1)
  }
})

test('an attempt that the store fails is told to the log, and its place is free again', async (t) => {
  const { db, add, delivery } = await aDelivery(t, async () => FAILED)
  await add('one')
  const told: unknown[] = []
  let free = 0
  const one = delivery(NOW, {
    db: { ...db, write: () => Promise.reject(new StoreAway('full')) },
    log: { info() {}, warn() {}, error: ({ event }) => told.push(event) },
    onFree: () => free++,
  })
  await one.turn()
  await one.idle()
  assert.deepEqual([told, free], [['alerts.attempt_failed'], 1])
})

/** It waits 12 s for its turn, 2 s for its address and 10 s for its answer. */
const LONGEST_ATTEMPT_MS = 24_000

test('no other instance sends what the longest attempt may still bring', async (t) => {
  const called: string[] = []
  const { add, delivery } = await aDelivery(t, (destinationId) => {
    called.push(destinationId)
    return called.length === 1 ? new Promise(() => {}) : Promise.resolve(FAILED)
  })
  await add('one')
  await delivery(NOW).turn()
  await until('the attempt', () => called.length === 1)
  const other = delivery(NOW + LONGEST_ATTEMPT_MS)
  await other.turn()
  await other.idle()
  assert.deepEqual(called, ['one'])
})

const FAILED: Attempt = {
  outcome: 'failed',
  isGone: false,
  retryAfterMs: null,
  has: () => false,
}

/** A store, and what sends what waits in it at a time. */
async function aDelivery(t: After, send: (destinationId: string) => Promise<Attempt>) {
  const { db, run } = await aStore(t)
  const tell = (ownerId: string, occurredAt: number, notBefore = occurredAt) =>
    run(...insertAlert(ownerId, `msg_${ownerId}`, { ...anAlert(), occurredAt, notBefore }))
  return {
    db,
    tell,
    async add(
      id: string,
      occurredAt = NOW,
      { host = `${id}:443`, ownerId = `owner of ${id}`, place = 0 } = {},
    ) {
      await run(destination(id, ownerId, { place, host }), activate(id))
      await tell(ownerId, occurredAt)
    },
    delivery: (now: number, other: Partial<Parameters<typeof createDelivery>[0]> = {}) =>
      createDelivery({
        db,
        store: createAlertStore(db),
        clock: { now: () => now },
        // What is sealed is the id of the destination.
        sealed: { seal: () => Buffer.of(), open: (_, plain) => plain },
        send: ({ target }) => send(target),
        log: {
          info() {},
          warn() {},
          error(line: unknown) {
            assert.fail(String(line))
          },
        } as never,
        onAttempt() {},
        onFree() {},
        ...other,
      }),
  }
}
