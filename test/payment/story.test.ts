/** What operators and buyers are told of an order, in each of its states, as one table. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { REPLAY_MS } from '../../src/payment/order.ts'
import type { Sale } from '../../src/payment/sales.ts'
import type { ShownOrder } from '../../src/payment/showing.ts'
import { storyOf, storyOfDeleted } from '../../src/payment/story.ts'
import { DAY, SECOND } from '../support/shop.ts'

const NOW = Date.UTC(2026, 0, 2, 3, 4)
const MINUTE = 60 * SECOND
const [OPENED, QUOTED, PAID] = [NOW - 60 * MINUTE, NOW - 45 * MINUTE, NOW - 50 * MINUTE]
const UNTIL = '2026-01-02T02:19:00.000Z'
const END = NOW + DAY

const order = (facts: Partial<ShownOrder>): ShownOrder =>
  ({
    order_id: 'order_1',
    payment_hash: 'abc',
    amount_sats: 100,
    created_at: OPENED,
    quote_expires_at: QUOTED,
    settled_at: null,
    settled_by: null,
    unfulfilled_at: null,
    public_id: null,
    extends_id: null,
    expires_at: null,
    delivered_at: null,
    delivered_by: null,
    sealed_at: null,
    sealed_by: null,
    restored_at: null,
    seed: null,
    refunded_at: null,
    refund_reason: null,
    contested: 0,
    ...facts,
  }) as ShownOrder

const SETTLED: Partial<ShownOrder> = {
  state: 'settled',
  settled_at: PAID,
  settled_by: 'stream',
  public_id: 'catch_1',
  expires_at: END,
  seed: new Uint8Array(1),
}
const DELIVERED: Partial<ShownOrder> = { ...SETTLED, delivered_at: PAID + MINUTE }
const EXTENDED: Partial<ShownOrder> = { ...SETTLED, public_id: null, extends_id: 'catch_0' }
const REPLACED: Partial<ShownOrder> = { ...SETTLED, extends_id: 'catch_0' }
const OVER: Partial<ShownOrder> = { expires_at: NOW }
const OWED: Partial<ShownOrder> = {
  settled_at: PAID,
  settled_by: 'lookup',
  state: 'paid_unfulfilled',
}

/** What happened, as `event: says`; what the buyer is told; what is left to do. */
type Told = { facts: Partial<ShownOrder>; happened: RegExp[]; buyer: RegExp; todo?: RegExp }

const ASKED = /^opened: The buyer asked for it\.$/
const INVOICED = /^quoted: Its invoice over 100 sats was made, payable until 2026-01-02T02:19:00/
const REPORTED = /^paid: It was paid: the node reported it\.$/
const MADE = /^provisioned: It was provisioned as catch_1\.$/
const HANDED = /^delivered: The service handed out the capability\.$/
const SOLD = [ASKED, INVOICED, REPORTED, MADE]
const TO_EXTEND = /^opened: The buyer asked to extend catch_0\.$/

const STORIES: Record<string, Told> = {
  'that can be paid': {
    facts: { state: 'pending', quote_expires_at: NOW + 1 },
    happened: [ASKED, /^quoted: /],
    buyer:
      /^We have not seen a payment yet.* until 2026-01-02T03:04:00.001Z\..*do not pay twice\.$/,
  },
  'whose quote has ended': {
    facts: { state: 'pending', quote_expires_at: NOW },
    happened: [ASKED, /^quoted: /],
    buyer: /has expired, and our node has not said yet.*Do not pay again\./,
    todo: /^Nothing: the service asks the node/,
  },
  'that expired': {
    facts: { state: 'dead' },
    happened: [ASKED, INVOICED, /^expired: Its invoice was not paid in time\.$/],
    buyer: /^The invoice expired without being paid.*buy again with a new key\.$/,
  },
  'that is owed': {
    facts: OWED,
    happened: [
      ...[ASKED, INVOICED, /^paid: It was paid: the node was asked\.$/],
      /^unfulfilled: It could not be provisioned\.$/,
    ],
    buyer: /^Your payment has arrived.*Do not pay again: we will deliver it or pay you back\.$/,
    todo: /^You owe this\..*: mayfly order deliver abc\. Or .*: mayfly order refund abc --reason <text>$/,
  },
  'that is owed since it was restored': {
    facts: { ...OWED, restored_at: PAID - MINUTE, settled_by: 'preimage' },
    happened: [
      /^restored: The operator brought it back/,
      /^paid: It was paid: the buyer proved it\.$/,
    ],
    buyer: /^Your payment has arrived/,
    todo: /^You owe this/,
  },
  'that was paid back': {
    facts: { ...OWED, state: 'refunded', sealed_at: NOW - MINUTE },
    happened: [
      ...[ASKED, INVOICED, /^paid: /, /^unfulfilled: /],
      /^refunded: The operator recorded that the buyer was paid back\.$/,
    ],
    buyer: /^We paid you back for this purchase\. You can buy again/,
  },
  'that was paid back after it was delivered and used': {
    facts: {
      ...DELIVERED,
      seed: null,
      sealed_at: NOW - 2 * MINUTE,
      sealed_by: 'use',
      state: 'refunded',
      refunded_at: NOW - MINUTE,
      refund_reason: 'case 17',
    },
    happened: [
      ...[...SOLD, HANDED, /^sealed: /],
      /^refunded: The operator recorded that the buyer was paid back: case 17$/,
    ],
    buyer: /^We paid you back/,
  },
  'that was paid back after it had extended': {
    facts: { ...EXTENDED, state: 'refunded', sealed_at: NOW, refunded_at: NOW, refund_reason: '' },
    happened: [
      ...[TO_EXTEND, INVOICED, REPORTED, /^provisioned: catch_0 was extended\.$/],
      /^refunded: The operator recorded that the buyer was paid back\.$/,
    ],
    buyer: /^We paid you back/,
  },
  'that was repaired': {
    facts: { ...SETTLED, unfulfilled_at: PAID - MINUTE, settled_by: null },
    happened: [
      ...[ASKED, INVOICED, /^paid: It was paid\.$/, /^unfulfilled: /],
      /^provisioned: It was provisioned as catch_1\.$/,
    ],
    buyer: /waits for you/,
    todo: /--print$/,
  },
  'that waits for its buyer': {
    facts: SETTLED,
    happened: SOLD,
    buyer: /^It is paid and waits for you.* same Idempotency-Key, or poll the order\.$/,
    todo: /^Nothing if the buyer can do that\..*mayfly order deliver abc --print$/,
  },
  'that waits, and is contested': {
    facts: { ...SETTLED, contested: 1 },
    happened: SOLD,
    buyer:
      /waits for you\..*with the credential that you paid with, or with its key and the preimage.*\(Payment-Preimage\)/,
    todo: /--print$/,
  },
  'that was restored and waits': {
    facts: { ...SETTLED, restored_at: PAID - MINUTE },
    happened: [/^restored: /, REPORTED, MADE],
    buyer: /the Payment or L402 credential that you paid with/,
    todo: /--print$/,
  },
  'that was sold in place of an extension and waits': {
    facts: REPLACED,
    happened: [
      ...[TO_EXTEND, INVOICED, REPORTED],
      /^provisioned: catch_0 could not be extended any more, so a new one was provisioned: catch_1\.$/,
    ],
    buyer: /^catch_0 could not be extended any more when the payment arrived, so a new one waits/,
    todo: /--print$/,
  },
  'that nobody collected in its life': {
    facts: { ...SETTLED, ...OVER },
    happened: [...SOLD, /^ended: What it bought reached the end of its life\.$/],
    buyer: /^It was paid, and ended before it was collected\./,
    todo: /^If that was your fault, pay it back, and then: mayfly order refund abc --settled --reason <text>$/,
  },
  'that nobody collected before its seal': {
    facts: { ...SETTLED, seed: null, sealed_at: NOW - MINUTE, sealed_by: 'age' },
    happened: [...SOLD, /^sealed: It is not handed out again: its time was over\.$/],
    buyer: /ended before it was collected/,
    todo: /^If that was your fault/,
  },
  'that was delivered': {
    facts: DELIVERED,
    happened: [...SOLD, HANDED],
    buyer:
      /delivered at 2026-01-02T02:15:00.000Z\. Until its first use, and until 2026-01-03T02:15:00.000Z, the same request with the same key gets the same answer again\.$/,
  },
  'that was delivered, and whose key others could guess': {
    facts: { ...DELIVERED, contested: 1 },
    happened: [...SOLD, HANDED],
    buyer: /the same request with proof of payment gets the same answer again/,
  },
  'that was delivered in place of an extension': {
    facts: { ...REPLACED, delivered_at: PAID + MINUTE },
    happened: [TO_EXTEND, INVOICED, REPORTED, /^provisioned: catch_0/, HANDED],
    buyer: /the same request with proof of payment/,
  },
  'that was used': {
    facts: { ...DELIVERED, seed: null, sealed_at: NOW - MINUTE, sealed_by: 'use' },
    happened: [...SOLD, HANDED, /^sealed: It is not handed out again: a token was used\.$/],
    buyer: /delivered at 2026-01-02T02:15:00.000Z, and cannot be delivered twice/,
    todo: /^Nothing, as a rule: .*: mayfly order refund abc --settled --reason <text>$/,
  },
  'that the operator delivered': {
    facts: { ...DELIVERED, delivered_by: 'operator', seed: null, sealed_at: PAID + MINUTE },
    happened: [
      ...[...SOLD, /^delivered: The operator handed out the capability\.$/],
      /^sealed: It is not handed out again\.$/,
    ],
    buyer: /^We handed it to you ourselves\. That was the only copy, so keep it\.$/,
  },
  'that was delivered and has ended': {
    facts: { ...DELIVERED, ...OVER },
    happened: [...SOLD, HANDED, /^ended: /],
    buyer: /^It was paid and delivered, and has ended\. Buy again with a new key to go on\.$/,
  },
  'that has extended a capability': {
    facts: { ...EXTENDED, delivered_at: PAID + MINUTE, sealed_at: NOW - MINUTE },
    happened: [
      ...[TO_EXTEND, INVOICED, REPORTED, /^provisioned: catch_0 was extended\.$/],
      /^delivered: The service confirmed the extension\.$/,
    ],
    buyer: /^It was paid, and has extended catch_0 until 2026-01-03T03:04:00.000Z\. Go on with the/,
  },
  'that has extended a capability, and whose time is over': {
    facts: { ...EXTENDED, ...OVER },
    happened: [
      ...[TO_EXTEND, INVOICED, REPORTED, /^provisioned: /],
      /^ended: The time that it added was over\.$/,
    ],
    buyer:
      /^It was paid, and extended catch_0 until 2026-01-02T03:04:00.000Z\. That time is over\.$/,
  },
  'that has extended a capability to an unknown time': {
    facts: { ...EXTENDED, expires_at: null },
    happened: [TO_EXTEND, INVOICED, REPORTED, /^provisioned: /],
    buyer: /^It was paid, and has extended catch_0\. Go on/,
  },
}

suite('the story of an order in the store', () => {
  for (const [what, { facts, happened, buyer, todo }] of Object.entries(STORIES)) {
    test(`an order ${what} says what happened, what to tell its buyer and what to do`, () => {
      const story = storyOf(order(facts), NOW)
      const told = story.happened
        .map(({ event, says }) => `${event}: ${says}`)
        .toSorted((a, b) => rankOf(a, happened) - rankOf(b, happened))
      assert.equal(told.length, happened.length, told.join('\n'))
      for (const [i, expected] of happened.entries()) assert.match(told[i] ?? '', expected)
      assert.match(story.tellBuyer, buyer)
      if (todo === undefined) assert.equal(story.todo, null)
      else assert.match(story.todo ?? '', todo)
    })
  }

  test('what happened is told in the order of time', () => {
    const { happened } = storyOf(order({ ...DELIVERED, ...OVER }), NOW)
    assert.deepEqual(
      happened.map(({ at, event }) => [at, event]),
      [
        [OPENED, 'opened'],
        [OPENED, 'quoted'],
        [PAID, 'paid'],
        [PAID, 'provisioned'],
        [PAID + MINUTE, 'delivered'],
        [NOW, 'ended'],
      ],
    )
    assert.ok(happened[1]?.says.includes(UNTIL))
    const aged = { expires_at: NOW - MINUTE, sealed_at: NOW, sealed_by: 'age' } as const
    const ends = storyOf(order({ ...SETTLED, ...aged }), NOW).happened.slice(-2)
    assert.deepEqual(
      ends.map(({ event }) => event),
      ['ended', 'sealed'],
    )
  })

  test('a delivered answer is repeated for a day, and an end is told from its moment on', () => {
    const buyer = (facts: Partial<ShownOrder>) => storyOf(order(facts), NOW).tellBuyer
    const within = { ...SETTLED, delivered_at: NOW - REPLAY_MS + 1 }
    assert.match(buyer(within), /gets the same answer again/)
    assert.match(buyer({ ...within, delivered_at: NOW - REPLAY_MS }), /cannot be delivered twice/)
    assert.match(buyer({ ...within, expires_at: NOW + 1 }), /gets the same answer again/)
    assert.match(buyer({ ...EXTENDED, expires_at: NOW + 1 }), /Go on with the tokens/)
    const ending = storyOf(order({ ...SETTLED, expires_at: NOW + 1 }), NOW)
    assert.ok(!ending.happened.some(({ event }) => event === 'ended'))
  })
})

suite('the story of a deleted order', () => {
  test('a deleted order that was paid back says so, and advises nothing', () => {
    const tombstone = { payment_hash: 'abc', ended: 'aged', ended_at: NOW } as const
    const refund = { refunded_at: NOW + MINUTE, amount_sats: 100, reason: 'case 17' }
    const { happened, tellBuyer, todo } = storyOfDeleted(tombstone, { sale: SALE, refund })
    assert.deepEqual(
      happened.map(({ event }) => event),
      ['paid', 'deleted', 'refunded'],
    )
    assert.match(tellBuyer, /We paid you back/)
    assert.equal(todo, null)
  })

  test('a refund is advised by its command only while the sale is known', () => {
    const tombstone = { payment_hash: 'abc', ended: 'aged', ended_at: NOW } as const
    const todo = (sale: Sale | null) => storyOfDeleted(tombstone, { sale, refund: null }).todo
    assert.match(todo(SALE) ?? '', /order refund abc/)
    assert.doesNotMatch(todo(null) ?? '', /order refund/)
  })

  const SALE = { settled_at: PAID, amount_sats: 100 } as Sale
  const ENDS = {
    used: [/it was collected and used, and over/, /collected and used.*Nothing is owed/, null],
    aged: [/it was paid, and over/, /If you never got it, tell us/, /^Nothing, as a rule\./],
    dead: [/it was never paid, and over/, /expired without being paid/, /mayfly order restore abc/],
  } as const
  for (const [ended, [says, buyer, todo]] of Object.entries(ENDS)) {
    test(`a deleted order says how it ended, and when it was paid: ${ended}`, () => {
      const tombstone = { payment_hash: 'abc', ended: ended as 'used', ended_at: NOW }
      const story = storyOfDeleted(tombstone, { sale: SALE, refund: null })
      assert.deepEqual(story.happened[0], {
        at: PAID,
        event: 'paid',
        says: 'It was paid, 100 sats.',
      })
      const deleted = storyOfDeleted(tombstone, { sale: null, refund: null }).happened
      assert.deepEqual([deleted.length, deleted[0]?.at, deleted[0]?.event], [1, NOW, 'deleted'])
      assert.deepEqual(story.happened[1], deleted[0])
      assert.match(deleted[0]?.says ?? '', says)
      assert.match(story.tellBuyer, buyer)
      if (todo === null) assert.equal(story.todo, null)
      else assert.match(story.todo ?? '', todo)
    })
  }
})

/** Where a line stands in a list of expected ones: the same time has no order between kinds. */
function rankOf(line: string, expected: RegExp[]): number {
  const at = expected.findIndex((one) => one.test(line))
  return at === -1 ? expected.length : at
}
