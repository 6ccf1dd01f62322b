/** `mayfly order …`: what an operator does with orders, while the service runs. `order-work.ts` does it. */
import { type Command, Option } from 'commander'
import type { OrderState } from '../../payment/store.ts'
import { goesWith, planOption, productOption, whole } from '../options.ts'
import { checkReason, operator, withStore } from './command.ts'
import type { ListOptions, LostOptions } from './order-work.ts'

const STATES: readonly OrderState[] = [
  ...(['pending', 'settled', 'dead', 'paid_unfulfilled', 'refunded'] as const),
]
const ORDER = ['<order>', 'its payment hash, its invoice, or its id, order_…'] as const
const PREIMAGE = [
  '--preimage-file <file>',
  'the proof, if the node has lost the invoice too',
] as const

/** The work loads the server with it, so only a running command does. */
const works = () => import('./order-work.ts')

export function addOrder(program: Command): void {
  const order = program
    .command('order')
    .description('look at orders, deliver what is owed, record refunds')
  addList(order)
  addShow(order)
  addDeliver(order)
  addRefund(order)
  addRestore(order)
}

function addList(order: Command): void {
  operator<ListOptions>(
    order
      .command('list')
      .description('list orders, the newest first')
      .addOption(new Option('--state <state>', 'in this state').choices(STATES))
      .addOption(productOption())
      .option(
        '--since <time>',
        'opened since then: a date, a time, or how long ago, such as 24h or 7d',
      )
      .option('--limit <count>', 'at most this many, up to 10 000', whole(1, 10_000), 50),
    {
      examples: [
        'mayfly order list --since 24h',
        'mayfly order list --state paid_unfulfilled',
        'mayfly order list --product catch --since 2026-01-01 --json',
      ],
    },
    async (_output, options) => {
      const { list, readWanted } = await works()
      const wanted = readWanted(options)
      return withStore((_config, db) => list(db, wanted))
    },
  )
}

function addShow(order: Command): void {
  operator<object, [name: string]>(
    order
      .command('show')
      .description(
        'show what happened to an order, what to answer its buyer, and what is left to do',
      )
      .argument(
        '<order>',
        'its payment hash, its invoice, its id, or the public id of what it bought',
      ),
    {
      examples: [
        'mayfly order show <paymentHash>',
        'mayfly order show lnbc…',
        'mayfly order show catch_…',
      ],
    },
    async (_output, _options, [name]) => {
      const { readName, show } = await works()
      const ref = readName(name)
      return withStore((_config, db) => show(db, ref))
    },
  )
}

function addDeliver(order: Command): void {
  operator<{ print?: true }, [name: string]>(
    order
      .command('deliver')
      .description('provision a paid order again after it has failed; its buyer then collects it')
      .argument(...ORDER)
      .option('--print', 'print the capability, once, for a buyer who cannot prove the payment'),
    {
      examples: [
        'mayfly order deliver <paymentHash>',
        'mayfly order deliver <paymentHash> --print',
      ],
    },
    async (_output, { print = false }, [name]) => {
      const { deliver, handOut, readOneName } = await works()
      const ref = readOneName(name)
      const work = print ? handOut : deliver
      return withStore((config, db) => work(config, db, ref))
    },
  )
}

function addRefund(order: Command): void {
  operator<Partial<LostOptions> & { reason: string; settled?: true }, [name: string]>(
    order
      .command('refund')
      .description('record that you have paid an order back, delivered or not; no money moves')
      .argument(...ORDER)
      .requiredOption('--reason <text>', 'why, for your books; no buyer sees it')
      .option('--settled', 'although its buyer has what it bought, or can collect it')
      .addOption(productOption('of an order that this store has lost'))
      .addOption(planOption('of such an order'))
      .option(...PREIMAGE),
    {
      examples: [
        'mayfly order refund <paymentHash> --reason "could not be provisioned"',
        'mayfly order refund <paymentHash> --settled --reason "the inbox never worked"',
        'mayfly order refund <paymentHash> --reason "lost" --product whisper --plan spark',
      ],
    },
    async (_output, { reason, settled: isSettled = false, ...options }, [name]) => {
      const { readLost, readOneName, refund, refundOfLost } = await works()
      checkReason(reason)
      const { product, plan, preimageFile } = options
      goesWith('--plan', plan !== undefined, {
        '--product': product,
        '--preimage-file': preimageFile,
      })
      goesWith('--product', product !== undefined, { '--plan': plan })
      if (product !== undefined && plan !== undefined) {
        const lost = readLost(name, { ...options, product, plan })
        return withStore((config, db) => refundOfLost(config, db, { lost, reason }))
      }
      const ref = readOneName(name)
      return withStore((_config, db) => refund(db, { ref, reason, isSettled }))
    },
  )
}

function addRestore(order: Command): void {
  operator<LostOptions, [name: string]>(
    order
      .command('restore')
      .description('bring back a paid order that this store has lost, after a restored backup')
      .argument('<order>', 'the payment hash of its invoice, or the invoice')
      .addOption(productOption().makeOptionMandatory())
      .addOption(planOption().makeOptionMandatory())
      .option('--order <id>', 'the id that the buyer has, order_…')
      .option(...PREIMAGE),
    { examples: ['mayfly order restore <paymentHash> --product catch --plan spark'] },
    async (_output, options, [name]) => {
      const { readLost, restore } = await works()
      const lost = readLost(name, options)
      return withStore((config, db) => restore(config, db, lost))
    },
  )
}
