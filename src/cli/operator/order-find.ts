/** `mayfly order find` and `mayfly order list`: which order it is, its story, and what to tell its buyer. */
import type { Command } from 'commander'
import type { Db } from '../../db/db.ts'
import { rfc3339, systemClock } from '../../lib/clock.ts'
import { isProduct, PRODUCT_NAMES } from '../../lib/product-names.ts'
import type { Found, ListedOrder, OrderName } from '../../payment/finding.ts'
import type { OrderState } from '../../payment/store.ts'
import type { Story } from '../../payment/story.ts'
import { wholeNumber } from '../cli.ts'
import { examples } from '../examples.ts'
import { CliError, EXIT } from '../exit.ts'
import { columns, span } from '../text.ts'
import { type Answer, give, operator, withStore } from './command.ts'
import { timeFrom } from './times.ts'

const STATES: readonly OrderState[] = [
  ...(['opening', 'pending', 'settled', 'dead', 'paid_unfulfilled', 'refunded'] as const),
]
/** The longest list. What is longer is a question for the store itself. */
const MAX_LISTED = 10_000

export function addFind(order: Command): void {
  order
    .command('find')
    .description('tell the story of an order, and what to tell its buyer')
    .argument('<name>', 'its payment hash, its invoice, its id, or the public id of what it bought')
    .addHelpText(
      'after',
      examples(
        'mayfly order find <paymentHash>',
        'mayfly order find lnbc…',
        'mayfly order find catch_…',
      ),
    )
    .action(
      operator<object, [name: string]>(async (output, _options, [name]) => {
        const { findByName, readOrderName } = await import('../../payment/finding.ts')
        const { storyOf, storyOfDeleted } = await import('../../payment/story.ts')
        const wanted = readOrderName(name)
        if (wanted === null) throw notAName(name)
        const now = systemClock.now()
        const found = await withStore((_config, db) => findByName(db, wanted))
        switch (found.kind) {
          case 'order':
            return give(output, told(found, storyOf(found.order, now), now))
          case 'deleted':
            return give(output, told(found, storyOfDeleted(found.tombstone, found.sale), now))
          case 'none':
            throw new CliError(NOT_FOUND[wanted.by], EXIT.gone)
        }
      }),
    )
}

const notAName = (name: string): CliError =>
  new CliError(
    `${name} is neither a payment hash, nor an invoice, nor the id of an order or of what one bought.`,
    EXIT.usage,
  )

/** Rows are deleted 30 days after their end; payment hashes outlive them. */
const NOT_FOUND: Record<OrderName['by'], string> = {
  payment_hash:
    'This store has and had no order with that payment hash, or the order was never paid and is long gone. If your node says that the invoice is paid, you owe it: mayfly order restore --help',
  order_id:
    'There is no order with that id in this store. Orders are deleted 30 days after their end: ask the buyer for the invoice or its payment hash.',
  public_id:
    'No order in this store bought that. Orders are deleted 30 days after their end: ask the buyer for the invoice or its payment hash.',
}

/** The order's id stays out of it: whoever has that can collect a paid order. */
function told(
  found: Exclude<Found, { kind: 'none' }>,
  { happened, tellBuyer, todo }: Story,
  now: number,
): Answer {
  const facts = factsOf(found)
  const others = found.kind === 'order' ? found.others.map(listed) : []
  const rows = [
    ...Object.entries(facts)
      .filter(([, value]) => value !== null)
      .map(([name, value]) => [LABELS[name as keyof typeof facts], String(value)]),
    ...happened.map(({ at, says }, i) => [
      i === 0 ? 'story' : '',
      `${rfc3339(at)}  ${says} (${since(at, now)})`,
    ]),
    ['tell the buyer', tellBuyer],
    ...others.map((other, i) => [i === 0 ? 'other orders' : '', inOneLine(other)]),
    ...(todo === null ? [] : [['to do', todo]]),
  ]
  return {
    json: {
      ...facts,
      story: happened.map(({ at, ...rest }) => ({ at: rfc3339(at), ...rest })),
      ...{ tellBuyer, todo, others },
    },
    text: columns(rows),
  }
}

const LABELS = {
  state: 'state',
  product: 'product',
  planId: 'plan',
  amountSats: 'sats',
  network: 'network',
  paymentHash: 'payment hash',
  publicId: 'public id',
  extendsId: 'extends',
}

function factsOf(found: Exclude<Found, { kind: 'none' }>) {
  if (found.kind === 'order') {
    const { order } = found
    return {
      state: order.state as string,
      product: order.product,
      planId: order.plan_id,
      amountSats: order.amount_sats,
      network: order.network,
      paymentHash: order.payment_hash,
      publicId: order.public_id,
      extendsId: order.extends_id,
    }
  }
  const { tombstone, sale } = found
  return {
    state: 'deleted',
    product: sale?.product ?? null,
    planId: sale?.plan_id ?? null,
    amountSats: sale?.amount_sats ?? null,
    network: sale?.network ?? null,
    paymentHash: tombstone.payment_hash,
    publicId: null,
    extendsId: null,
  }
}

/** An order in a list, without its id. */
const listed = (order: ListedOrder) => ({
  openedAt: rfc3339(order.created_at),
  state: order.state,
  product: order.product,
  planId: order.plan_id,
  amountSats: order.amount_sats,
  paymentHash: order.payment_hash,
  publicId: order.public_id,
  extendsId: order.extends_id,
})

function inOneLine({ extendsId, publicId, ...order }: ReturnType<typeof listed>): string {
  const extended = publicId === null ? `extends ${extendsId}` : `replaced ${extendsId}`
  const what = extendsId === null ? `bought ${publicId}` : extended
  return `${order.openedAt}  ${order.state}  ${what}  ${order.paymentHash ?? '-'}`
}

const since = (at: number, now: number): string => {
  const seconds = Math.max(0, Math.round((now - at) / 1000))
  return at > now ? 'in the future' : `${span(seconds)} ago`
}

type ListOptions = { state?: string; product?: string; since?: string; limit: string }

export function addList(order: Command): void {
  order
    .command('list')
    .description('list orders, the newest first')
    .option('--state <state>', STATES.join(', '))
    .option('--product <product>', PRODUCT_NAMES.join(', '))
    .option(
      '--since <time>',
      'opened since then: a date, a time, or how long ago, such as 24h or 7d',
    )
    .option('--limit <count>', `at most this many, up to ${MAX_LISTED}`, '50')
    .addHelpText(
      'after',
      examples(
        'mayfly order list --since 24h',
        'mayfly order list --state paid_unfulfilled',
        'mayfly order list --product catch --since 2026-01-01 --json',
      ),
    )
    .action(
      operator<ListOptions>(async (output, options) => {
        const wanted = readWanted(options)
        return give(output, await withStore((_config, db) => list(db, wanted)))
      }),
    )
}

type Wanted = Parameters<typeof import('../../payment/finding.ts').listOrders>[1]

/** @throws CliError that names the option. */
function readWanted({ state, product, since, limit }: ListOptions): Wanted {
  const known = STATES.find((one) => one === state)
  if (state !== undefined && known === undefined) {
    throw new CliError(`--state must be one of ${STATES.join(', ')}.`, EXIT.usage)
  }
  if (product !== undefined && !isProduct(product)) {
    throw new CliError(`--product must be one of ${PRODUCT_NAMES.join(', ')}.`, EXIT.usage)
  }
  return {
    state: known ?? null,
    product: product ?? null,
    since: since === undefined ? 0 : timeFrom(since, '--since', systemClock.now()),
    limit: wholeNumber(limit, { option: '--limit', least: 1, most: MAX_LISTED }),
  }
}

async function list(db: Db, wanted: Wanted): Promise<Answer> {
  const { listOrders } = await import('../../payment/finding.ts')
  // One more, to know whether there are more.
  const found = await listOrders(db, { ...wanted, limit: wanted.limit + 1 })
  const hasMore = found.length > wanted.limit
  const orders = found.slice(0, wanted.limit).map(listed)
  const rows = orders.map((order) => [
    ...[order.openedAt, order.state, order.product, order.planId, `${order.amountSats}`],
    order.paymentHash ?? '-',
  ])
  const head = ['OPENED', 'STATE', 'PRODUCT', 'PLAN', 'SATS', 'PAYMENT HASH']
  return {
    json: { orders, hasMore },
    text: rows.length === 0 ? 'There are no such orders.\n' : columns([head, ...rows]),
    ...(hasMore ? { note: `Only the newest ${wanted.limit} are shown: --limit shows more.` } : {}),
  }
}
