import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { apart, type BlindWindow } from '../../src/lib/windows.ts'
import { fairDeadline } from '../../src/pulse/state.ts'

/** A ping came at 1000. The next is expected at 1060, and late at 1090. */
const JOB = every(60, { nextExpectedAt: 1060, graceMs: 30 })
const LATE = 1090
/** From one grace before the ping is expected. */
const MATTERS = 1030

const rows: [note: string, windows: [beganAt: number, endedAt: number][], lateAt: number][] = [
  ['no window', [], LATE],
  ['before it matters', [[900, MATTERS - 1]], LATE],
  ['ends when it begins to matter', [[900, MATTERS]], MATTERS + 90],
  ['inside', [[1040, 1050]], 1050 + 90],
  ['around the deadline', [[1080, 1200]], 1200 + 90],
  ['around everything', [[900, 8200]], 8200 + 90],
  ['begins at the deadline', [[LATE, 1100]], 1100 + 90],
  ['after the deadline', [[LATE + 1, 1200]], LATE],
  [
    'a second one before the deadline that the first has moved',
    [
      [1080, 1100],
      [1190, 1300],
    ],
    1300 + 90,
  ],
  [
    'a second one after the deadline that the first has moved',
    [
      [1080, 1100],
      [1191, 1300],
    ],
    1100 + 90,
  ],
]

for (const [note, windows, lateAt] of rows) {
  test(`a blind window moves the deadline if it overlaps the time in which a ping was due: ${note}`, () => {
    const given = windows.map(([beganAt, endedAt]) => ({ beganAt, endedAt }))
    assert.equal(fairDeadline(JOB, given), lateAt)
  })
}

const aWindow = fc
  .tuple(fc.nat(3000), fc.nat(400))
  .map(([beganAt, length]): BlindWindow => ({ beganAt, endedAt: beganAt + length }))
const aJob = fc
  .record({
    nextExpectedAt: fc.integer({ min: 500, max: 2500 }),
    intervalMs: fc.integer({ min: 20, max: 300 }),
    graceMs: fc.integer({ min: 20, max: 300 }),
  })
  .map(({ intervalMs, ...job }) => ({ ...every(intervalMs, job), intervalMs }))

test('a deadline never moves forward in time, and a window that it does not overlap moves nothing', () => {
  fc.assert(
    fc.property(aJob, fc.array(aWindow, { maxLength: 8 }), (job, given) => {
      const windows = apart(given)
      const lateAt = fairDeadline(job, windows)
      const plain = job.nextExpectedAt + job.graceMs
      assert.ok(lateAt >= plain)
      const matter = windows.filter(
        ({ beganAt, endedAt }) => endedAt >= job.nextExpectedAt - job.graceMs && beganAt <= lateAt,
      )
      assert.equal(fairDeadline(job, matter), lateAt)
      const ends = matter.map(({ endedAt }) => endedAt + job.intervalMs + job.graceMs)
      assert.equal(lateAt, Math.max(plain, ...ends))
    }),
  )
})

test('one more blind window never makes a monitor late sooner', () => {
  fc.assert(
    fc.property(aJob, fc.array(aWindow, { maxLength: 8 }), aWindow, (job, given, more) => {
      assert.ok(fairDeadline(job, apart([...given, more])) >= fairDeadline(job, apart(given)))
    }),
  )
})

test('joined windows cover the same times, apart from each other and in order', () => {
  fc.assert(
    fc.property(fc.array(aWindow, { maxLength: 8 }), fc.nat(3500), (given, time) => {
      const joined = apart(given)
      const isIn = ({ beganAt, endedAt }: BlindWindow) => beganAt <= time && time <= endedAt
      assert.equal(joined.some(isIn), given.some(isIn))
      for (const [i, { beganAt }] of joined.slice(1).entries()) {
        assert.ok(beganAt > (joined[i]?.endedAt ?? 0))
      }
    }),
  )
})

test('a window in which a scheduled run was missed moves the deadline to the first run after it, and its grace', () => {
  const daily = { nextExpectedAt: 1000, graceMs: 30, expectedAfter: () => 2000 }
  assert.equal(fairDeadline(daily, [{ beganAt: 990, endedAt: 1010 }]), 2030)
  assert.equal(fairDeadline(daily, [{ beganAt: 100, endedAt: 900 }]), 1030)
})

/** A job that pings every so often. */
function every<Job>(intervalMs: number, job: Job): Job & { expectedAfter(time: number): number } {
  return { ...job, expectedAfter: (time) => time + intervalMs }
}
