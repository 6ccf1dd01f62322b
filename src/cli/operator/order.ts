/** `mayfly order …`: what an operator does with orders, while the service runs. `order-work.ts` does it. */
import { systemClock } from '../../lib/clock.ts'
import { PLAN_IDS, PRODUCT_NAMES } from '../../lib/product-names.ts'
import { group, NEEDED, whole } from '../declare.ts'
import { goesWith } from '../options.ts'
import { checkReason, operator } from './command.ts'
import { timeFrom } from './times.ts'

const STATES = ['pending', 'settled', 'dead', 'paid_unfulfilled', 'refunded'] as const
const ORDER = { '<order>': 'its payment hash, its invoice, or its id, order_…' }
const PREIMAGE = { '--preimage-file <file>': 'the proof, if the node has lost the invoice too' }

/** The work loads the server with it, so only a running command does. */
const works = () => import('./order-work.ts')

const addList = operator({
  command: 'list',
  says: 'list orders, the newest first',
  takes: {
    '--state <state>': ['in this state', STATES],
    '--product <product>': ['the product', PRODUCT_NAMES],
    '--since <time>': 'opened since then: a date, a time, or how long ago, such as 24h or 7d',
    '--limit <count>': ['at most this many, up to 10 000', whole(1, 10_000), 50],
  },
  examples: [
    'mayfly order list --since 24h',
    'mayfly order list --state paid_unfulfilled',
    'mayfly order list --product catch --since 2026-01-01 --json',
  ],
  async run({ state = null, product = null, since: from, limit }) {
    const since = from === undefined ? 0 : timeFrom(from, '--since', systemClock.now())
    const { list, onStore } = await works()
    return onStore(({ db }) => list(db, { state, product, since, limit }))
  },
})

const addShow = operator({
  command: 'show',
  says: 'show what happened to an order, what to answer its buyer, and what is left to do',
  takes: { '<order>': 'its payment hash, its invoice, its id, or the public id of what it bought' },
  examples: [
    'mayfly order show <paymentHash>',
    'mayfly order show lnbc…',
    'mayfly order show catch_…',
  ],
  async run({ order }) {
    const { onStore, readName, show } = await works()
    const ref = readName(order)
    return onStore((on) => show(on, ref))
  },
})

const addDeliver = operator({
  command: 'deliver',
  says: 'provision a paid order again after it has failed; its buyer then collects it',
  takes: {
    ...ORDER,
    '--print': 'print the capability, once, for a buyer who cannot prove the payment',
  },
  examples: ['mayfly order deliver <paymentHash>', 'mayfly order deliver <paymentHash> --print'],
  async run({ order, print }) {
    const { deliver, handOut, onStore, readOneName } = await works()
    const ref = readOneName(order)
    return onStore((on) => (print ? handOut : deliver)(on, ref))
  },
})

const addRefund = operator({
  command: 'refund',
  says: 'record that you have paid an order back, delivered or not; no money moves',
  takes: {
    ...ORDER,
    '--reason <text>': ['why, for your books; no buyer sees it', String, NEEDED],
    '--settled': 'although its buyer has what it bought, or can collect it',
    '--product <product>': ['of an order that this store has lost', PRODUCT_NAMES],
    '--plan <plan>': ['of such an order', PLAN_IDS],
    ...PREIMAGE,
  },
  examples: [
    'mayfly order refund <paymentHash> --reason "could not be provisioned"',
    'mayfly order refund <paymentHash> --settled --reason "the inbox never worked"',
    'mayfly order refund <paymentHash> --reason "lost" --product whisper --plan spark',
  ],
  async run({ order, reason, settled: isSettled = false, ...lost }) {
    checkReason(reason)
    const { product, plan, preimageFile } = lost
    goesWith('--plan', plan !== undefined, {
      '--product': product,
      '--preimage-file': preimageFile,
    })
    goesWith('--product', product !== undefined, { '--plan': plan })
    const { onStore, readLost, readOneName, refund, refundOfLost } = await works()
    if (product !== undefined && plan !== undefined) {
      const known = readLost(order, { ...lost, product, plan })
      return onStore((on) => refundOfLost(on, { lost: known, reason }))
    }
    const ref = readOneName(order)
    return onStore((on) => refund(on, { ref, reason, isSettled }))
  },
})

const addRestore = operator({
  command: 'restore',
  says: 'bring back a paid order that this store has lost, after a restored backup',
  takes: {
    '<invoice>': 'the payment hash of its invoice, or the invoice',
    '--product <product>': ['the product', PRODUCT_NAMES, NEEDED],
    '--plan <plan>': ['the plan', PLAN_IDS, NEEDED],
    '--order <id>': 'the id that the buyer has, order_…',
    ...PREIMAGE,
  },
  examples: ['mayfly order restore <paymentHash> --product catch --plan spark'],
  async run({ invoice, ...options }) {
    const { onStore, readLost, restore } = await works()
    const lost = readLost(invoice, options)
    return onStore((on) => restore(on, lost))
  },
})

export const addOrder = group(
  { command: 'order', says: 'look at orders, deliver what is owed, record refunds' },
  [addList, addShow, addDeliver, addRefund, addRestore],
)
