import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBodyBudget, REQUEST_BYTES } from '../../src/http/body-budget.ts'

const KIB = 1024
/** In what a request of 8 KiB and its body of 8 KiB hold together. */
const BODY = 8 * KIB
const EACH = REQUEST_BYTES + BODY
const LIMITS = { perNetwork: 6 * EACH, perTarget: 4 * EACH, inAll: 8 * EACH }

/** A budget, and the bodies that were evicted from it. */
function aBudget() {
  const budget = createBodyBudget(LIMITS)
  const evicted: string[] = []
  return {
    budget,
    evicted,
    /** Whether a body of 8 KiB found room. */
    begin(network: string, target: string, name = `${network} to ${target}`) {
      const reservation = budget.admit({ network, target })
      reservation?.evicted.addEventListener('abort', () => evicted.push(name))
      return { reservation, hasRoom: reservation?.reserve(BODY) ?? false }
    },
    count(network: string, target: string, bodies: number): number {
      return Array.from({ length: bodies }, () => this.begin(network, target)).filter(
        ({ hasRoom }) => hasRoom,
      ).length
    },
  }
}

test('a capability, a network, and all together hold only so many bytes, headers included', () => {
  const of = aBudget()
  assert.equal(of.count('a', 'one', 10), 4, 'one capability')
  assert.equal(of.count('a', 'two', 10), 2, 'one network')
  assert.equal(of.count('b', 'two', 10), 2, 'all: what is left of the second capability')
  assert.deepEqual(of.budget.held(), { bodies: 8, bytes: 8 * EACH })
})

test('a body that ends gives everything back, once', () => {
  const of = aBudget()
  const { reservation } = of.begin('a', 'one')
  reservation?.release()
  reservation?.release()
  assert.equal(reservation?.reserve(1), false)
  assert.deepEqual(of.budget.held(), { bodies: 0, bytes: 0 })
  assert.equal(of.count('a', 'one', 10), 4)
})

test('a body that finds no room gives up all that it had', () => {
  const { budget } = aBudget()
  const reservation = budget.admit({ network: 'a', target: 'one' })
  assert.equal(reservation?.reserve(LIMITS.perTarget), false)
  assert.deepEqual(budget.held(), { bodies: 0, bytes: 0 })
})

test('a network that fills an inbox gives up its oldest body to a newcomer, until both hold the same', () => {
  const of = aBudget()
  for (const name of ['1', '2', '3', '4']) of.begin('a', 'one', name)
  assert.equal(of.begin('b', 'one', 'b').hasRoom, true)
  assert.equal(of.begin('b', 'one', 'b').hasRoom, true)
  assert.equal(of.begin('b', 'one', 'b').hasRoom, false)
  assert.deepEqual(of.evicted, ['1', '2'])
})

test('a hundred networks that each take all they can leave room for a newcomer', () => {
  const limits = { perNetwork: 32, perTarget: 16, inAll: 64 }
  const mib = (value: number): number => value * KIB * KIB
  const budget = createBodyBudget({
    perNetwork: mib(limits.perNetwork),
    perTarget: mib(limits.perTarget),
    inAll: mib(limits.inAll),
  })
  for (let network = 0; network < 100; network++) {
    for (let target = 0; target < 10; target++) {
      const who = { network: `n${network}`, target: `t${target}` }
      for (let i = 0; i < 8; i++) budget.admit(who)?.reserve(mib(1) / 4)
    }
  }
  const reservation = budget.admit({ network: 'newcomer', target: 't0' })
  assert.equal(reservation?.reserve(64 * KIB), true)
  assert.ok(budget.held().bytes <= mib(limits.inAll))
})

test('many networks of a wider one count as one, so that nobody fills the room with addresses alone', () => {
  for (const [around, newcomer] of [
    [(i: number) => `203.0.${i}`, '198.51.100'],
    [(i: number) => `2001:db8:${i.toString(16)}`, '2001:db9:0'],
  ] as const) {
    const of = aBudget()
    for (let i = 0; i < 8; i++) assert.equal(of.begin(around(i), `${i}`, `${i}`).hasRoom, true)
    // Each of them holds less than the newcomer will.
    for (let i = 0; i < 4; i++) assert.equal(of.begin(newcomer, 'mine').hasRoom, true)
    assert.deepEqual(of.evicted, ['0', '1', '2', '3'])
    assert.equal(of.begin(newcomer, 'other').hasRoom, false)
  }
})

test('a body finds room to its end where all others hold as much as it will', () => {
  const of = aBudget()
  for (let i = 0; i < 8; i++) of.begin(`${i}.0.0`, `${i}`)
  const reservation = of.budget.admit({ network: '9.0.0', target: 'mine' })
  for (let i = 0; i < 8; i++) assert.equal(reservation?.reserve(BODY / 8), true, `${i}`)
})

test('a body that has arrived is never given up', () => {
  const of = aBudget()
  for (let i = 0; i < 4; i++) of.begin('a', 'one').reservation?.received()
  assert.equal(of.begin('b', 'one').hasRoom, false)
  assert.deepEqual(of.evicted, [])
})

test('a body that shrinks gives back the rest, and one that finds no room to grow keeps what it had', () => {
  const of = aBudget()
  const { reservation } = of.begin('a', 'one')
  assert.equal(reservation?.resize(0), true)
  assert.deepEqual(of.budget.held(), { bodies: 1, bytes: REQUEST_BYTES })
  assert.equal(reservation?.resize(3 * EACH + BODY), true)
  assert.deepEqual(of.budget.held(), { bodies: 1, bytes: 4 * EACH })
  assert.equal(reservation?.resize(3 * EACH + BODY + 1), false, 'one capability')
  assert.deepEqual(of.budget.held(), { bodies: 1, bytes: 4 * EACH })
  reservation?.release()
  assert.equal(reservation?.resize(0), false)
  assert.deepEqual(of.budget.held(), { bodies: 0, bytes: 0 })
})
