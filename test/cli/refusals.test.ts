import assert from 'node:assert/strict'
import { test } from 'node:test'
import { watchRefusals } from '../../src/cli/catch/refusals.ts'
import type { CatchRefusals } from '../../src/client/index.ts'
import { until } from '../support/until.ts'

const at = { firstAt: '2026-01-01T00:00:00Z', lastAt: '2026-01-01T00:00:00Z' }

/** An inbox whose counts a test sets, and what a listener is told of them. */
function anAccount() {
  const counts = new Map<CatchRefusals['reasons'][number]['reason'], number>()
  const told: string[] = []
  const account = { counts, told, asked: 0, isAway: false }
  const ask = async (): Promise<CatchRefusals> => {
    account.asked++
    if (account.isAway) throw new Error('away')
    const reasons = [...counts].map(([reason, count]) => ({ reason, count, ...at }))
    return { total: 0, reasons }
  }
  return { ...account, account, ask, tell: (sentence: string) => void told.push(sentence) }
}

test('refusals of before the start are not told, and new ones are told once', async (t) => {
  const { account, ask, tell } = anAccount()
  account.counts.set('rate_limited', 5)
  const watch = watchRefusals(ask, tell, { afterEventMs: 1, everyMs: 3_600_000 })
  t.after(watch.stop)
  await until('it has asked', () => account.asked === 1)
  account.counts.set('rate_limited', 17).set('too_large', 1)
  watch.arrived()
  await until('it tells', () => account.told.length === 2)
  assert.match(account.told[0] ?? '', /^12 webhooks were refused and not kept: .*rate of the plan/)
  assert.match(account.told[1] ?? '', /^1 webhook was refused and not kept: larger/)
  watch.arrived()
  await until('it has asked again', () => account.asked === 3)
  watch.arrived()
  await until('and again', () => account.asked === 4)
  assert.equal(account.told.length, 2)
})

test('a burst of events asks once, and without any event it is asked in turns', async (t) => {
  const { account, ask, tell } = anAccount()
  const watch = watchRefusals(ask, tell, { afterEventMs: 3_600_000, everyMs: 1 })
  t.after(watch.stop)
  await until('it asks in turns', () => account.asked > 3)
  for (let i = 0; i < 50; i++) watch.arrived()
  const asked = account.asked
  watch.arrived()
  assert.equal(account.asked, asked)
})

test('refusals while the service is away are told when it is back', async (t) => {
  const { account, ask, tell } = anAccount()
  const watch = watchRefusals(ask, tell, { afterEventMs: 1, everyMs: 1 })
  t.after(watch.stop)
  await until('it has asked', () => account.asked > 1)
  account.isAway = true
  account.counts.set('storage_full', 2)
  const asked = account.asked
  await until('it has asked in vain', () => account.asked > asked + 1)
  assert.deepEqual(account.told, [])
  account.isAway = false
  await until('it tells', () => account.told.length > 0)
  assert.deepEqual(account.told, [
    '2 webhooks were refused and not kept: the storage of the plan is full. `mayfly catch delete` makes room.',
  ])
})
