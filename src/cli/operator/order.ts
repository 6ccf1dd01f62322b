/** `mayfly order …`: the operator's actions on one order, while the service runs. */
import type { Command } from 'commander'
import { examples } from '../examples.ts'
import { give, operator, withStore } from './command.ts'
import { addFind, addList } from './order-find.ts'
import type { RestoreOptions } from './order-restore.ts'
import type { OrderWork } from './order-work.ts'

/** The modules that do the work load the server with them, so only a running command does. */
type Works = typeof import('./order-work.ts')

const ORDER = ['<order>', 'its payment hash, as in the log, or its id, order_…'] as const

export function addOrder(program: Command): void {
  const order = program.command('order').description('find an order, look at it, or repair it')
  addFind(order)
  addList(order)
  order
    .command('show')
    .description('show what the store has about an order, without its secrets')
    .argument(...ORDER)
    .addHelpText('after', examples('mayfly order show <paymentHash>', 'mayfly order show order_…'))
    .action(onOrder(({ show }) => show))
  order
    .command('close')
    .description('end an unpaid order whose invoice the node has lost')
    .argument(...ORDER)
    .addHelpText('after', examples('mayfly order close <paymentHash>'))
    .action(onOrder(({ close }) => close))
  order
    .command('repair')
    .description('provision a paid order again after it has failed')
    .argument(...ORDER)
    .option(
      '--deliver',
      'print the capability of a paid order that was never collected, once; for a buyer who cannot prove the payment',
    )
    .addHelpText(
      'after',
      examples('mayfly order repair <paymentHash>', 'mayfly order repair <paymentHash> --deliver'),
    )
    .action(
      onOrder<{ deliver?: true }>(({ repair, deliver }, options) =>
        options.deliver ? deliver : repair,
      ),
    )
  order
    .command('refunded')
    .description('record that you have refunded an order that could not be delivered')
    .argument(...ORDER)
    .addHelpText('after', examples('mayfly order refunded <paymentHash>'))
    .action(onOrder(({ refunded }) => refunded))
  addRestore(order)
}

function onOrder<Options = object>(choose: (works: Works, options: Options) => OrderWork) {
  return operator<Options, [order: string]>(async (output, options, [name]) => {
    const works = await import('./order-work.ts')
    works.checkOrderName(name)
    const work = choose(works, options)
    const answer = await withStore(async (config, db) =>
      work(config, db, await works.findOrder(db, name)),
    )
    return give(output, answer)
  })
}

function addRestore(order: Command): void {
  order
    .command('restore')
    .description('bring back a paid order that this store has lost, after a restored backup')
    .argument('<paymentHash>', 'the payment hash of its invoice')
    .requiredOption('--product <product>', 'catch, pulse or whisper')
    .requiredOption('--plan <plan>', 'spark, standard or long')
    .option('--order <id>', 'the id that the buyer has, order_…')
    .option('--preimage-file <file>', 'the proof, if the node has lost the invoice too')
    .option('--refunded', 'record that you have refunded it instead')
    .addHelpText(
      'after',
      examples('mayfly order restore <paymentHash> --product catch --plan spark'),
    )
    .action(
      operator<RestoreOptions, [paymentHash: string]>(async (output, options, [paymentHash]) => {
        const { readLost, restore } = await import('./order-restore.ts')
        const lost = readLost(paymentHash, options)
        return give(output, await withStore((config, db) => restore(config, db, lost)))
      }),
    )
}
