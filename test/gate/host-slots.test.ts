/** How many calls a stranger's server gets from us at once, and what those behind them get. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHostSlots, type HostSlots } from '../../src/gate/host-slots.ts'
import { manualClock } from '../support/shop.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** So many calls to one host, none of which ends before the test says so. */
function manyCalls(slots: HostSlots, count: number, host = 'lnurl.example') {
  const stop = new AbortController()
  const ends: (() => void)[] = []
  let running = 0
  let most = 0
  const calls = Array.from({ length: count }, () =>
    slots.use(host, stop.signal, async () => {
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

const newSlots = () => createHostSlots(manualClock(), () => false)

test('a provider gets four calls at once, and each of 20 has its turn', async () => {
  const calls = manyCalls(newSlots(), 20)
  await turn()
  assert.equal(calls.running(), 4)
  await calls.endAll()
  const outcomes = await calls.outcomes
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 20)
  assert.equal(calls.most(), 4)
})

test('a provider that is busy holds up no other', async () => {
  const slots = newSlots()
  const busy = manyCalls(slots, 10)
  const other = manyCalls(slots, 1, 'other.example')
  await turn()
  assert.deepEqual([busy.running(), other.running()], [4, 1])
  await busy.endAll()
  await other.endAll()
})

test('32 calls wait for a provider, and whoever comes after them is told at once', async () => {
  const calls = manyCalls(newSlots(), 4 + 32 + 3)
  await turn()
  assert.equal(calls.running(), 4)
  await calls.endAll()
  const outcomes = await calls.outcomes
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 36)
  const refused = outcomes.filter((outcome) => outcome.status === 'rejected')
  assert.deepEqual(
    refused.map(({ reason }) => String(reason.message)),
    Array.from({ length: 3 }, () => 'the provider is too busy'),
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
