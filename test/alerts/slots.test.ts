/** How many calls a stranger's server gets from us at once, how many look-ups, and what those behind them get. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSlots, type Slots } from '../../src/alerts/slots.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** So many calls to one host, none of which ends before the test says so. */
function manyCalls(slots: Slots, count: number, { from = '' }: { from?: string } = {}) {
  const stop = new AbortController()
  const ends: (() => void)[] = []
  let running = 0
  let most = 0
  const calls = Array.from({ length: count }, () =>
    slots.use({ from, signal: stop.signal }, async () => {
      running++
      most = Math.max(most, running)
      await new Promise<void>((resolve) => ends.push(resolve))
      running--
    }),
  )
  return {
    stop,
    outcomes: Promise.allSettled(calls),
    running: () => running,
    /** Ends the one that began first. */
    async endOne() {
      ends.shift()?.()
      await turn()
    },
    most: () => most,
    /** Ends all that run, until none is left. */
    async endAll() {
      while (ends.length > 0) {
        for (const end of ends.splice(0)) end()
        await turn()
      }
    },
  }
}

const newSlots = () => createSlots({ concurrent: 4, waiting: 32 })

test('a host gets four calls at once, and each of 20 has its turn, whichever failed before', async () => {
  const slots = newSlots()
  const { signal } = new AbortController()
  const failing = () => slots.use({ from: '', signal }, () => Promise.reject(new Error('failed')))
  for (let i = 0; i < 4; i++) await assert.rejects(failing)
  const calls = manyCalls(slots, 20)
  await turn()
  assert.equal(calls.running(), 4)
  await calls.endAll()
  const outcomes = await calls.outcomes
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 20)
  assert.equal(calls.most(), 4)
})

test('32 calls wait for a host, and whoever comes after them is told at once', async () => {
  const slots = newSlots()
  const before = manyCalls(slots, 8)
  await before.endAll()
  // Who has had a turn waits no more, whatever ends later.
  before.stop.abort(new Error('its time is over'))
  const calls = manyCalls(slots, 4 + 32 + 3)
  await turn()
  assert.equal(calls.running(), 4)
  await calls.endAll()
  const outcomes = await calls.outcomes
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 36)
  const refused = outcomes.filter((outcome) => outcome.status === 'rejected')
  assert.deepEqual(
    refused.map(({ reason }) => String(reason.reason)),
    Array.from({ length: 3 }, () => 'too busy'),
  )
})

test('whoever gives up waiting leaves the place to the next, and takes no slot', async () => {
  const slots = newSlots()
  const running = manyCalls(slots, 4)
  const impatient = manyCalls(slots, 2)
  const patient = manyCalls(slots, 2)
  await turn()
  impatient.stop.abort(new Error('the asker is gone'))
  assert.deepEqual(
    (await impatient.outcomes).map(({ status }) => status),
    ['rejected', 'rejected'],
  )
  await running.endAll()
  assert.equal(patient.running(), 2)
  assert.equal(impatient.most(), 0)
  await patient.endAll()
  const full = manyCalls(slots, 5)
  await turn()
  assert.equal(full.running(), 4)
  await full.endAll()
})

test('who causes many calls to a host holds up nobody else who wants one of it', async () => {
  const slots = newSlots()
  const greedy = manyCalls(slots, 24, { from: 'greedy' })
  const modest = manyCalls(slots, 1, { from: 'modest' })
  await turn()
  assert.deepEqual([greedy.running(), modest.running()], [4, 0])
  await greedy.endOne()
  await greedy.endOne()
  assert.deepEqual([greedy.running(), modest.running()], [3, 1])
  await modest.endAll()
  await greedy.endAll()
})

test('of sixteen turns nobody has more than two at once, and nobody waits behind who wants many', async () => {
  const slots = createSlots({ concurrent: 16, ofOne: 2, waiting: 256 })
  const { signal } = new AbortController()
  const order: string[] = []
  const ends: (() => void)[] = []
  const want = (from: string) =>
    slots.use({ from, signal }, async () => {
      order.push(from)
      await new Promise<void>((resolve) => ends.push(resolve))
    })
  const all = Array.from({ length: 20 }, () => want('greedy'))
  all.push(want('modest'))
  assert.deepEqual(order, ['greedy', 'greedy', 'modest'])
  for (let n = 0; n < 20; n++) all.push(want(`other ${n}`))
  assert.equal(order.length, 16)
  while (ends.length > 0) {
    ends.shift()?.()
    await turn()
  }
  await Promise.all(all)
  const lastOther = order.indexOf('other 19')
  const greedyBefore = order.slice(0, lastOther).filter((from) => from === 'greedy').length
  assert.ok(greedyBefore <= 4, `${greedyBefore} turns of who wants many came first`)
})

test('whoever has waited for too long has no turn, and takes none from others', async () => {
  const slots = createSlots({ concurrent: 1, waiting: 4 })
  const gone = { from: 'gone', signal: AbortSignal.abort(new Error('too late')) }
  const { signal } = new AbortController()
  let end = (): void => {}
  const first = slots.use({ from: '', signal }, () => new Promise<void>((done) => (end = done)))
  await assert.rejects(
    slots.use(gone, async () => assert.fail('it ran')),
    /too late/,
  )
  const last = slots.use({ from: '', signal }, async () => 'ran')
  end()
  await first
  assert.equal(await last, 'ran')
})
