import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import type { FastifyReply } from 'fastify'
import {
  createMemory,
  type Memory,
  type MemoryLimits,
  REQUEST_BYTES,
  type Reservation,
} from '../../src/http/memory.ts'

const MESSAGES = { messages: 100, messagesOfNetwork: 50 }
const LIMITS = {
  perCapability: 100,
  perNetwork: 200,
  inAll: 300,
  perInbox: 100,
  unpaid: 100,
  ...MESSAGES,
}
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
  assert.equal(budget.bytesByKind().answer, 260)
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
  assert.equal(budget.bytesByKind().answer, 180)
})

test('an answer that waits holds nothing, so that two never wait for each other', async () => {
  const { budget, stream } = aBudget()
  const [one, other] = [stream('a', 'one'), stream('a', 'one')]
  await one.reserve(50)
  await other.reserve(50)
  const grown = waits(one.reserve(90))
  assert.equal(budget.bytesByKind().answer, 50)
  other.resize(0)
  assert.equal(await grown.isOver(), true)
  assert.equal(budget.bytesByKind().answer, 90)
})

test('an answer that is larger than its limit has all of the room', async () => {
  const { budget, stream } = aBudget()
  const small = stream('a', 'one')
  await small.reserve(1)
  const large = waits(stream('a', 'one').reserve(1_000_000))
  assert.equal(await large.isOver(), false)
  small.release()
  assert.equal(await large.isOver(), true)
  assert.equal(budget.bytesByKind().answer, LIMITS.perCapability)
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

test('a capability has 64 answers that wait, and no more; its streams are not counted', async () => {
  const { budget, answer, stream } = aBudget()
  await answer('a', 'one').reserve(100)
  const waiting = Array.from({ length: 64 }, () => waits(answer('a', 'one').reserve(1)))
  await assert.rejects(answer('a', 'one').reserve(1), REFUSED)
  const stays = waits(stream('a', 'one').reserve(1))
  assert.equal(budget.waiting(), 65)
  assert.equal(await answer('b', 'one').reserve(1), true)
  assert.equal(await waiting[0]?.isOver(), false)
  assert.equal(await stays.isOver(), false)
})

test('a client network has only so many answers that wait, whatever they are of', async () => {
  const { answer, stream } = aBudget()
  await stream('x', 'one').reserve(100)
  await stream('y', 'one').reserve(100)
  const waiting = Array.from({ length: 128 }, (_, n) => waits(answer(`${n}`, 'one').reserve(1)))
  await assert.rejects(answer('z', 'one').reserve(1), REFUSED)
  assert.equal(await answer('z', 'two').reserve(1), true)
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
  const reservation = answer('a', 'one')
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
  // What is being read cannot be given back, so nobody is closed for it.
  const reading = Promise.withResolvers<void>()
  const read = busy.whileReading(() => reading.promise)
  const reservation = answer('a', 'one')
  const refused = assert.rejects(reservation.reserve(50), REFUSED)
  const patient = waits(stream('a', 'one').reserve(50))
  for (let look = 0; look < 5; look++) t.mock.timers.tick(LOOK)
  await refused
  assert.equal(budget.closedReaders(), 0)
  assert.equal(await patient.isOver(), false)
  assert.equal(budget.bytesByKind().answer, 100)
  reading.resolve()
  await read
  t.mock.timers.tick(LOOK)
  assert.equal(budget.closedReaders(), 0, 'its reader has its time from now on')
  t.mock.timers.tick(LOOK)
  assert.equal(budget.closedReaders(), 1, 'the refused answer is over, and nobody disconnects it')
  assert.equal(await patient.isOver(), true)
  assert.equal(budget.bytesByKind().answer, 50)
})

test('a reader is not slow while what it reads waits for its turn', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { stream, closed } = aBudget()
  const reader = stream('a', 'one', 'reader')
  await reader.reserve(100)
  const first = stream('b', 'two').waitTurn()
  const turn = reader.waitTurn()
  const waiting = waits(stream('a', 'one').reserve(50))
  for (let look = 0; look < 5; look++) t.mock.timers.tick(LOOK)
  await Promise.all([first, turn])
  t.mock.timers.tick(LOOK)
  assert.deepEqual(closed, [])
  t.mock.timers.tick(LOOK)
  assert.deepEqual(closed, ['reader'])
  assert.equal(await waiting.isOver(), true)
})

test('an answer that is being read is held until it is there, though its reader has left', async () => {
  const { budget, stream, leave } = aBudget()
  const reservation = stream('a', 'one', 'leaver')
  await reservation.reserve(70)
  const reading = Promise.withResolvers<string>()
  const read = reservation.whileReading(() => reading.promise)
  leave('leaver')
  assert.equal(budget.bytesByKind().answer, 70)
  reading.resolve('rows')
  assert.equal(await read, 'rows')
  assert.equal(budget.bytesByKind().answer, 0)
  assert.equal(await reservation.reserve(10), false)
  reservation.resize(10)
  assert.equal(budget.bytesByKind().answer, 0)
})

test('a reader that leaves while it waits, or before, takes nothing', async () => {
  const { budget, stream, answer, leave } = aBudget()
  const busy = stream('a', 'one')
  await busy.reserve(100)
  const waiting = stream('a', 'one', 'leaver').reserve(50)
  leave('leaver')
  assert.equal(await waiting, false)
  assert.equal(budget.waiting(), 0)
  busy.release()
  assert.equal(budget.bytesByKind().answer, 0)
  assert.equal(
    await answer('a', 'one', 'gone').reserve(50),
    false,
    'no event follows for one that left before',
  )
  assert.equal(budget.bytesByKind().answer, 0)
})

test('parts of answers are made one in a turn of the event loop, in their order', async () => {
  const { stream } = aBudget()
  const made: number[] = []
  const all = Array.from({ length: 5 }, async (_, n) => {
    await stream(`${n}`, 'one').waitTurn()
    made.push(n)
  })
  for (let turn = 1; turn <= 5; turn++) {
    for (let step = 0; step < 5; step++) await Promise.resolve()
    assert.equal(made.length, turn, `after ${turn} turns`)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await Promise.all(all)
  assert.deepEqual(made, [0, 1, 2, 3, 4])
})

const KIB = 1024
/** In what a request of 8 KiB and its body of 8 KiB hold together. */
const BODY = 8 * KIB
const EACH = REQUEST_BYTES + BODY
const ROOM = {
  perNetwork: 6 * EACH,
  perInbox: 4 * EACH,
  inAll: 8 * EACH,
  unpaid: 5 * EACH,
  perCapability: 4 * EACH,
  ...MESSAGES,
}

/** A budget for bodies, and those that were evicted from it. */
function bodies() {
  const { budget, answer, closed } = aBudget(ROOM)
  const evicted: string[] = []
  return {
    budget,
    answer,
    closed,
    evicted,
    /** Whether a body of 8 KiB found room. */
    begin(network: string, inbox: string, name = `${network} to ${inbox}`) {
      const reservation = budget.forBody('inbox', { network, inbox })
      reservation?.evicted.addEventListener('abort', () => evicted.push(name))
      return { reservation, hasRoom: reservation?.reserve(BODY) ?? false }
    },
    count(network: string, inbox: string, bodies: number): number {
      return Array.from({ length: bodies }, () => this.begin(network, inbox)).filter(
        ({ hasRoom }) => hasRoom,
      ).length
    },
  }
}

test('a capability, a network, and all together hold only so many bytes, headers included', () => {
  const of = bodies()
  assert.equal(of.count('a', 'one', 10), 4, 'one capability')
  assert.equal(of.count('a', 'two', 10), 2, 'one network')
  assert.equal(of.count('b', 'two', 10), 2, 'all: what is left of the second capability')
  assert.equal(of.budget.bytesByKind().inbox, 8 * EACH)
})

test('a body that ends gives everything back, once', () => {
  const of = bodies()
  const { reservation } = of.begin('a', 'one')
  reservation?.release()
  reservation?.release()
  assert.equal(reservation?.reserve(1), false)
  assert.equal(of.budget.bytesByKind().inbox, 0)
  assert.equal(of.count('a', 'one', 10), 4)
})

test('a network that fills an inbox gives up its oldest body to a newcomer, until both hold the same', () => {
  const of = bodies()
  for (const name of ['1', '2', '3', '4']) of.begin('a', 'one', name)
  assert.equal(of.begin('b', 'one', 'b').hasRoom, true)
  assert.equal(of.begin('b', 'one', 'b').hasRoom, true)
  assert.equal(of.begin('b', 'one', 'b').hasRoom, false)
  assert.deepEqual(of.evicted, ['1', '2'])
})

test('a hundred networks that each take all they can leave room for a newcomer', () => {
  const mib = (value: number): number => value * KIB * KIB
  const { budget } = aBudget({
    perNetwork: mib(32),
    perInbox: mib(16),
    inAll: mib(64),
    unpaid: mib(64),
    perCapability: mib(12),
    ...MESSAGES,
  })
  for (let network = 0; network < 100; network++) {
    for (let target = 0; target < 10; target++) {
      const who = { network: `n${network}`, inbox: `t${target}` }
      for (let i = 0; i < 8; i++) budget.forBody('inbox', who)?.reserve(mib(1) / 4)
    }
  }
  const reservation = budget.forBody('inbox', { network: 'newcomer', inbox: 't0' })
  assert.equal(reservation?.reserve(64 * KIB), true)
  assert.ok(budget.bytesByKind().inbox <= mib(64))
})

test('many networks of a wider one count as one, so that nobody fills the room with addresses alone', () => {
  for (const [around, newcomer] of [
    [(i: number) => `203.0.${i}`, '198.51.100'],
    [(i: number) => `2001:db8:${i.toString(16)}`, '2001:db9:0'],
  ] as const) {
    const of = bodies()
    for (let i = 0; i < 8; i++) assert.equal(of.begin(around(i), `${i}`, `${i}`).hasRoom, true)
    // Each of them holds less than the newcomer will.
    for (let i = 0; i < 4; i++) assert.equal(of.begin(newcomer, 'mine').hasRoom, true)
    assert.deepEqual(of.evicted, ['0', '1', '2', '3'])
    assert.equal(of.begin(newcomer, 'other').hasRoom, false)
  }
})

test('a body finds room to its end where all others hold as much as it will', () => {
  const of = bodies()
  for (let i = 0; i < 8; i++) of.begin(`${i}.0.0`, `${i}`)
  const reservation = of.budget.forBody('inbox', { network: '9.0.0', inbox: 'mine' })
  for (let i = 0; i < 8; i++) assert.equal(reservation?.reserve(BODY / 8), true, `${i}`)
})

test('a body that has arrived is never given up', () => {
  const of = bodies()
  for (let i = 0; i < 4; i++) of.begin('a', 'one').reservation?.received()
  assert.equal(of.begin('b', 'one').hasRoom, false)
  assert.deepEqual(of.evicted, [])
})

test('a body that shrinks gives back the rest, and one that finds no room to grow keeps what it had', () => {
  const of = bodies()
  const { reservation } = of.begin('a', 'one')
  assert.equal(reservation?.resize(0), true)
  assert.equal(of.budget.bytesByKind().inbox, REQUEST_BYTES)
  assert.equal(reservation?.resize(3 * EACH + BODY), true)
  assert.equal(of.budget.bytesByKind().inbox, 4 * EACH)
  assert.equal(reservation?.resize(3 * EACH + BODY + 1), false, 'one capability')
  assert.equal(of.budget.bytesByKind().inbox, 4 * EACH)
  reservation?.release()
  assert.equal(reservation?.resize(0), false)
  assert.equal(of.budget.bytesByKind().inbox, 0)
})

test('what nobody has paid for has its half, and gives way to what is paid, in its own network too', () => {
  const { budget } = bodies()
  const evicted: string[] = []
  const body = (kind: 'unpaid' | 'paid', network: string, name: string) => {
    const reservation = budget.forBody(kind, { network })
    reservation?.evicted.addEventListener('abort', () => evicted.push(name))
    return reservation?.reserve(BODY) ?? false
  }
  for (let i = 0; i < 5; i++) assert.equal(body('unpaid', 'a', `${i}`), true)
  assert.equal(body('unpaid', 'a', 'more'), false, 'their part is full')
  for (let i = 0; i < 6; i++) assert.equal(body('paid', 'a', 'paid'), true, `${i}`)
  assert.deepEqual(evicted, ['0', '1', '2', '3', '4'])
  assert.equal(body('paid', 'a', 'paid'), false, 'of one network')
})

test('a body takes the room of a larger network only from a reader that is slow', async () => {
  const of = bodies()
  const reader = of.answer('a', 'reader', 'reader')
  await reader.reserve(4 * EACH)
  await of.answer('b', 'reader', 'other').reserve(2 * EACH)
  assert.equal(of.count('b', 'one', 3), 2, 'what is left')
  assert.deepEqual(of.closed, [])
  reader.release()
  assert.equal(of.count('b', 'two', 3), 3)
})

/** A budget for answers of nobody: `closed` tells whom it closed, `leave` is a client that goes; `gone` is one that left before. */
function aBudget(limits: MemoryLimits = LIMITS): {
  budget: Memory
  stream(capability: string, network: string, name?: string): Reservation
  answer(capability: string, network: string, name?: string): Reservation
  closed: string[]
  leave(name: string): void
} {
  const budget = createMemory(
    (request) => (request as unknown as { network: string }).network,
    limits,
  )
  const closed: string[] = []
  const readers = new Map<string, EventEmitter>()
  const reply = (network: string, name: string): FastifyReply => {
    const raw = Object.assign(new EventEmitter(), {
      destroyed: name === 'gone',
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
    stream: (capability, network, name = '') =>
      budget.forAnswer(reply(network, name), capability, { isStream: true }),
    answer: (capability, network, name = '') => budget.forAnswer(reply(network, name), capability),
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
