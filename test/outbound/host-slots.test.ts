/** How many calls a stranger's server gets from us at once, and what those behind them get. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHostSlots, type HostSlots } from '../../src/outbound/host-slots.ts'
import { manualClock } from '../support/shop.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** So many calls to one host, none of which ends before the test says so. */
function manyCalls(slots: HostSlots, count: number, call: { host?: string; from?: string } = {}) {
  const { host = 'lnurl.example', from = '' } = call
  const stop = new AbortController()
  const ends: (() => void)[] = []
  let running = 0
  let most = 0
  const calls = Array.from({ length: count }, () =>
    slots.use({ host, from, signal: stop.signal }, async () => {
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

const newSlots = () =>
  createHostSlots({
    clock: manualClock(),
    limits: { concurrent: 4, waiting: 32, pauses: true },
    isOutage: () => false,
  })

test('a host gets four calls at once, and each of 20 has its turn', async () => {
  const calls = manyCalls(newSlots(), 20)
  await turn()
  assert.equal(calls.running(), 4)
  await calls.endAll()
  const outcomes = await calls.outcomes
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 20)
  assert.equal(calls.most(), 4)
})

test('a host that is busy holds up no other', async () => {
  const slots = newSlots()
  const busy = manyCalls(slots, 10)
  const other = manyCalls(slots, 1, { host: 'other.example' })
  await turn()
  assert.deepEqual([busy.running(), other.running()], [4, 1])
  await busy.endAll()
  await other.endAll()
})

test('32 calls wait for a host, and whoever comes after them is told at once', async () => {
  const calls = manyCalls(newSlots(), 4 + 32 + 3)
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

test('a host that is down is paused only where no stranger could pause it for others', async () => {
  for (const pauses of [true, false]) {
    const limits = { concurrent: 4, waiting: 32, pauses }
    const slots = createHostSlots({ clock: manualClock(), limits, isOutage: () => true })
    const call = { host: 'hooks.example', from: '', signal: new AbortController().signal }
    const fail = () => slots.use(call, () => Promise.reject(new Error('down')))
    for (let i = 0; i < 5; i++) await assert.rejects(fail, /down/)
    await assert.rejects(fail, pauses ? { reason: 'paused' } : /down/)
  }
})

test('a pause lasts for 30 seconds, wherever the clock of the machine is set meanwhile', async () => {
  const limits = { concurrent: 4, waiting: 32, pauses: true }
  for (const jumpMs of [-600_000, 0, 600_000]) {
    const clock = manualClock()
    const slots = createHostSlots({ clock, limits, isOutage: () => true })
    const call = { host: 'lnurl.example', from: '', signal: new AbortController().signal }
    const fail = () => slots.use(call, () => Promise.reject(new Error('down')))
    for (let i = 0; i < 5; i++) await assert.rejects(fail, /down/)
    clock.jump(jumpMs)
    clock.advance(29_999)
    await assert.rejects(fail, { reason: 'paused' }, String(jumpMs))
    clock.advance(1)
    await assert.rejects(fail, /down/, String(jumpMs))
  }
})
