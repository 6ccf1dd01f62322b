import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createScheduler, type Scheduler } from '../../src/http/turns.ts'

const REFUSED = { phrase: 'rate limited', headers: { 'retry-after': '5' } }
const GONE = { phrase: 'request timeout' }
const HERE = new AbortController().signal

/** Work of so many slices, each of which notes its name. */
function work(
  scheduler: Scheduler,
  key: string,
  {
    slices = 1,
    done = [],
    gone = HERE,
  }: { slices?: number; done?: string[]; gone?: AbortSignal } = {},
) {
  return scheduler.run(key, gone, async (slice) => {
    for (let i = 0; i < slices; i++) await slice(async () => void done.push(key))
    return key
  })
}

/** Work that goes on when it is told to. */
function held(scheduler: Scheduler, key: string, gone = HERE) {
  const { promise, resolve } = Promise.withResolvers<void>()
  const slices: number[] = []
  const ended = scheduler.run(key, gone, async (slice) => {
    await slice(() => promise)
    for (let i = 0; i < 3; i++) await slice(async () => void slices.push(i))
  })
  return { finish: resolve, slices, ended }
}

test('work of one capability waits for a slice of each other, and never for all of their work', async () => {
  const scheduler = createScheduler()
  const done: string[] = []
  const long = work(scheduler, 'long', { slices: 1_000, done })
  const also = work(scheduler, 'also long', { slices: 1_000, done })
  await work(scheduler, 'short', { slices: 5, done })
  const before = done.length
  assert.ok(before <= 3 * 5 + 3, `${before} slices ran before the short work was done`)
  await Promise.all([long, also])
})

test('one slice runs at a time', async () => {
  const scheduler = createScheduler()
  let running = 0
  let most = 0
  const slice = async (): Promise<void> => {
    most = Math.max(most, ++running)
    await new Promise((resolve) => setImmediate(resolve))
    running--
  }
  await Promise.all(
    Array.from({ length: 10 }, (_, i) =>
      scheduler.run(`${i}`, HERE, async (run) => {
        for (let n = 0; n < 5; n++) await run(slice)
      }),
    ),
  )
  assert.equal(most, 1)
})

test('a capability has five works at once, which take turns, and the sixth is told to come back', async () => {
  const scheduler = createScheduler()
  const done: string[] = []
  const long = work(scheduler, 'inbox', { slices: 1_000, done })
  const waiting = Array.from({ length: 4 }, () => work(scheduler, 'inbox', { done }))
  assert.equal(scheduler.count(), 5)
  const others = Array.from({ length: 95 }, () => work(scheduler, 'inbox', { done }))
  for (const other of others) await assert.rejects(other, REFUSED)
  // Those of another capability are not concerned.
  await Promise.all([work(scheduler, 'another', { done }), ...waiting])
  assert.ok(done.length < 30, `${done.length} slices ran before the short works were done`)
  await long
  assert.equal(scheduler.count(), 0)
  assert.equal(done.length, 1_005, 'no slice of those that were refused')
})

test('work whose client has gone is dropped: before its turn, while it runs, and before it begins', async () => {
  const scheduler = createScheduler()
  const running = new AbortController()
  const waiting = new AbortController()
  const first = held(scheduler, 'inbox', running.signal)
  const done: string[] = []
  const second = work(scheduler, 'inbox', { done, gone: waiting.signal })
  const third = work(scheduler, 'inbox', { done })
  waiting.abort()
  running.abort()
  first.finish()
  await assert.rejects(second, GONE)
  await assert.rejects(first.ended, GONE)
  assert.deepEqual(first.slices, [], 'no slice ran after the client had gone')
  await third
  await assert.rejects(work(scheduler, 'inbox', { done, gone: AbortSignal.abort() }), GONE)
  assert.deepEqual(done, ['inbox'])
  assert.equal(scheduler.count(), 0)
})

test('only so many works run at once in all, and one more is told to come back', async () => {
  const scheduler = createScheduler()
  const works = Array.from({ length: 256 }, (_, i) => held(scheduler, `${i}`))
  await assert.rejects(work(scheduler, 'c'), REFUSED)
  for (const { finish } of works) finish()
  await Promise.all(works.map(({ ended }) => ended))
  assert.equal(await work(scheduler, 'c'), 'c')
})

test('work that fails leaves its place to the next', async () => {
  const scheduler = createScheduler()
  const failing = scheduler.run('inbox', HERE, async (slice) => {
    await slice(() => Promise.reject(new Error('the store is away')))
  })
  const next = work(scheduler, 'inbox')
  await assert.rejects(failing, /the store is away/)
  assert.equal(await next, 'inbox')
})
