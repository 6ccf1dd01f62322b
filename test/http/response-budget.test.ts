import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import type { FastifyReply } from 'fastify'
import {
  createResponseBudget,
  type Reservation,
  type ResponseBudget,
  type ResponseBudgetLimits,
} from '../../src/http/response-budget.ts'

const LIMITS = { perCapability: 100, perNetwork: 200, inAll: 300 }
const LOOK = 2_000
const REFUSED = { phrase: 'rate limited', headers: { 'retry-after': '2' } }

test('the budget holds no more than its limits: by capability, by network and in all', async () => {
  const { budget, stream } = aBudget()
  const first = stream('a', 'one')
  assert.equal(await first.reserve(60), true)
  const ofTheSame = waits(stream('a', 'one').reserve(60))
  const second = stream('b', 'one')
  assert.equal(await second.reserve(100), true)
  const ofTheNetwork = waits(stream('c', 'one').reserve(60))
  const third = stream('d', 'two')
  assert.equal(await third.reserve(100), true)
  const ofAll = waits(stream('e', 'three').reserve(60))
  assert.equal(budget.reservedBytes(), 260)
  assert.equal(budget.waiting(), 3)
  for (const waiting of [ofTheSame, ofTheNetwork, ofAll])
    assert.equal(await waiting.isOver(), false)

  third.release()
  assert.equal(await ofAll.isOver(), true)
  assert.equal(await ofTheNetwork.isOver(), false)
  second.release()
  assert.equal(await ofTheNetwork.isOver(), true)
  first.release()
  assert.equal(await ofTheSame.isOver(), true)
  assert.equal(budget.reservedBytes(), 180)
})

test('an answer that waits holds nothing, so that two never wait for each other', async () => {
  const { budget, stream } = aBudget()
  const [one, other] = [stream('a', 'one'), stream('a', 'one')]
  await one.reserve(50)
  await other.reserve(50)
  const grown = waits(one.reserve(90))
  assert.equal(budget.reservedBytes(), 50)
  other.resize(0)
  assert.equal(await grown.isOver(), true)
  assert.equal(budget.reservedBytes(), 90)
})

test('an answer that is larger than its limit has all of the room', async () => {
  const { budget, stream } = aBudget()
  const small = stream('a', 'one')
  await small.reserve(1)
  const large = waits(stream('a', 'one').reserve(1_000_000))
  assert.equal(await large.isOver(), false)
  small.release()
  assert.equal(await large.isOver(), true)
  assert.equal(budget.reservedBytes(), LIMITS.perCapability)
})

test('the client network that holds nothing goes before those that hold much', async () => {
  const { stream } = aBudget()
  const [heavy, other] = [stream('a', 'one'), stream('b', 'two')]
  await stream('c', 'one').reserve(100)
  await heavy.reserve(100)
  await other.reserve(100)
  const more = waits(stream('d', 'two').reserve(80))
  const newcomer = waits(stream('e', 'three').reserve(80))
  heavy.release()
  assert.equal(await newcomer.isOver(), true)
  assert.equal(await more.isOver(), false)
})

test('a capability has eight answers at once, 32 that wait, and no more', async () => {
  const { budget, answer } = aBudget()
  const holds = await Promise.all(Array.from({ length: 8 }, () => answer('a', 'one')))
  const waiting = Array.from({ length: 32 }, () => waits(answer('a', 'one')))
  assert.equal(budget.waiting(), 32)
  await assert.rejects(answer('a', 'one'), REFUSED)
  // Streams are no answers, and another capability has places of its own.
  await answer('b', 'one')
  holds[0]?.release()
  const over = await Promise.all(waiting.map(({ isOver }) => isOver()))
  assert.deepEqual(
    over,
    over.map((_, place) => place === 0),
  )
  await answer('c', 'two')
})

test('a client network has only so many answers that wait, whatever they are of', async () => {
  const { answer, stream } = aBudget()
  await stream('x', 'one').reserve(100)
  await stream('y', 'one').reserve(100)
  const holds = await Promise.all(Array.from({ length: 128 }, (_, n) => answer(`${n}`, 'one')))
  const waiting = holds.map((reservation) => waits(reservation.reserve(1)))
  await assert.rejects(
    answer('z', 'one').then((reservation) => reservation.reserve(1)),
    REFUSED,
  )
  assert.equal((await answer('z', 'two')) !== null, true)
  assert.equal(await waiting[0]?.isOver(), false)
})

test('the slowest reader is closed when nothing moves while another waits', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { budget, stream, closed } = aBudget()
  const [slow, fast] = [stream('a', 'one', 'slow'), stream('a', 'one', 'fast')]
  await fast.reserve(50)
  await slow.reserve(50)
  fast.progressed()
  const waiting = waits(stream('a', 'one').reserve(50))
  assert.deepEqual(closed, [])
  t.mock.timers.tick(LOOK)
  assert.deepEqual(closed, ['slow'])
  assert.equal(budget.closedReaders(), 1)
  assert.equal(await waiting.isOver(), true)
})

test('a reader that goes on reading is closed last, and only before somebody is refused', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { stream, answer, closed } = aBudget()
  const reading = stream('a', 'one', 'reading')
  await reading.reserve(100)
  const reservation = await answer('a', 'one')
  const waiting = waits(reservation.reserve(50))
  for (let look = 1; look <= 3; look++) {
    reading.progressed()
    t.mock.timers.tick(LOOK)
    assert.deepEqual(closed, [], `after ${look} looks`)
  }
  reading.progressed()
  t.mock.timers.tick(LOOK)
  assert.deepEqual(closed, ['reading'])
  assert.equal(await waiting.isOver(), true)
})

test('a request without room is at the expense of its own capability, or of the client who has most', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { stream, closed } = aBudget()
  const bystander = stream('b', 'quiet', 'bystander')
  await bystander.reserve(50)
  await stream('a', 'one', 'own').reserve(100)
  const own = waits(stream('a', 'one').reserve(60))
  t.mock.timers.tick(LOOK)
  assert.deepEqual(closed, ['own'])
  assert.equal(await own.isOver(), true)

  await stream('c', 'one', 'greedy').reserve(100)
  await stream('d', 'two', 'other').reserve(80)
  const newcomer = waits(stream('e', 'three').reserve(50))
  t.mock.timers.tick(LOOK)
  assert.equal(await newcomer.isOver(), true)
  assert.ok(!closed.includes('bystander') && !closed.includes('other'), closed.join())
})

test('an answer that found no room in time is refused, and a stream goes on waiting', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { budget, stream, answer } = aBudget()
  const busy = stream('a', 'one')
  await busy.reserve(100)
  // What is being read cannot be given back, though its reader is closed.
  const reading = Promise.withResolvers<void>()
  const read = busy.whileReading(() => reading.promise)
  const reservation = await answer('a', 'one')
  const refused = assert.rejects(reservation.reserve(50), REFUSED)
  const patient = waits(stream('a', 'one').reserve(50))
  for (let look = 0; look < 5; look++) t.mock.timers.tick(LOOK)
  await refused
  assert.equal(budget.closedReaders(), 1, 'the refused answer is over, and nobody disconnects it')
  assert.equal(await patient.isOver(), false)
  assert.equal(budget.reservedBytes(), 100)
  reading.resolve()
  await read
  assert.equal(await patient.isOver(), true)
  assert.equal(budget.reservedBytes(), 50)
})

test('an answer that is being read is held until it is there, though its reader has left', async () => {
  const { budget, stream, leave } = aBudget()
  const reservation = stream('a', 'one', 'leaver')
  await reservation.reserve(70)
  const reading = Promise.withResolvers<string>()
  const read = reservation.whileReading(() => reading.promise)
  leave('leaver')
  assert.equal(budget.reservedBytes(), 70)
  reading.resolve('rows')
  assert.equal(await read, 'rows')
  assert.equal(budget.reservedBytes(), 0)
  assert.equal(await reservation.reserve(10), false)
  reservation.resize(10)
  assert.equal(budget.reservedBytes(), 0)
})

test('a reader that leaves while it waits takes nothing', async () => {
  const { budget, stream, leave } = aBudget()
  const busy = stream('a', 'one')
  await busy.reserve(100)
  const waiting = stream('a', 'one', 'leaver').reserve(50)
  leave('leaver')
  assert.equal(await waiting, false)
  assert.equal(budget.waiting(), 0)
  busy.release()
  assert.equal(budget.reservedBytes(), 0)
})

test('parts of answers are made one in a turn of the event loop, in their order', async () => {
  const { stream } = aBudget()
  const made: number[] = []
  const all = Array.from({ length: 5 }, async (_, n) => {
    await stream(`${n}`, 'one').waitTurn()
    made.push(n)
  })
  for (let turn = 1; turn <= 5; turn++) {
    await Promise.resolve()
    await Promise.resolve()
    assert.equal(made.length, turn, `after ${turn} turns`)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await Promise.all(all)
  assert.deepEqual(made, [0, 1, 2, 3, 4])
})

/** A budget for answers of nobody: `closed` tells whom it closed, `leave` is a client that goes. */
function aBudget(limits: ResponseBudgetLimits = LIMITS): {
  budget: ResponseBudget
  stream(capability: string, network: string, name?: string): Reservation
  answer(capability: string, network: string): Promise<Reservation>
  closed: string[]
  leave(name: string): void
} {
  const budget = createResponseBudget(
    (request) => (request as unknown as { network: string }).network,
    limits,
  )
  const closed: string[] = []
  const readers = new Map<string, EventEmitter>()
  const reply = (network: string, name: string): FastifyReply => {
    const raw = Object.assign(new EventEmitter(), {
      destroyed: false,
      destroy() {
        closed.push(name)
        raw.emit('close')
      },
    })
    readers.set(name, raw)
    return { raw, request: { network } } as unknown as FastifyReply
  }
  return {
    budget,
    closed,
    stream: (capability, network, name = '') => budget.forStream(reply(network, name), capability),
    answer: (capability, network) => budget.forResponse(reply(network, ''), capability),
    leave: (name) => void readers.get(name)?.emit('close'),
  }
}

/** Whether a promise is settled once everything that could settle it has run. */
function waits(promise: Promise<unknown>): { isOver(): Promise<boolean> } {
  let isOver = false
  promise.then(
    () => {
      isOver = true
    },
    () => {},
  )
  return {
    async isOver() {
      await new Promise((resolve) => setImmediate(resolve))
      return isOver
    },
  }
}
