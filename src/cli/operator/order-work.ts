/** The work of `mayfly order`. Each command tells what it changed, or why it changed nothing. */
import { readFileSync } from 'node:fs'
import type { Db } from '../../db/db.ts'
import { rfc3339, systemClock } from '../../lib/clock.ts'
import { isId } from '../../lib/ids.ts'
import { isProduct, PRODUCT_NAMES, type Product } from '../../lib/product-names.ts'
import type { Lightning } from '../../lightning/lightning.ts'
import { NodeError } from '../../lightning/node/error.ts'
import { type Opened, openLightning } from '../../lightning/open.ts'
import {
  deliverOrder,
  type HandedOut,
  handOutOrder,
  type ListedOrder,
  listOrders,
  type OrderRef,
  type Provisioned,
  readOrderRef,
  refundOrder,
  type Shown,
  showOrder,
} from '../../payment/operator.ts'
import {
  type Lost,
  type RefundingLost,
  type Restoring,
  refundLost,
  restoreOrder,
} from '../../payment/restoring.ts'
import type { OrderState } from '../../payment/store.ts'
import { type Story, storyOf, storyOfDeleted } from '../../payment/story.ts'
import { createSecrets } from '../../secrets/secrets.ts'
import type { Config } from '../../service/config.ts'
import { PROVISIONINGS, readAllPlans } from '../../service/products.ts'
import { secretsGiven } from '../../service/secret-file.ts'
import { bindStore } from '../../service/store-identity.ts'
import { wholeNumber } from '../cli.ts'
import { withFile } from '../data-folder.ts'
import { CliError, EXIT } from '../exit.ts'
import { planOf } from '../plan.ts'
import { columns, span } from '../text.ts'
import type { Answer } from './command.ts'
import { timeFrom } from './times.ts'

// Listing and showing

const STATES: readonly OrderState[] = [
  ...(['opening', 'pending', 'settled', 'dead', 'paid_unfulfilled', 'refunded'] as const),
]
/** The longest list. What is longer is a question for the store itself. */
const MAX_LISTED = 10_000

export type ListOptions = { state?: string; product?: string; since?: string; limit: string }

type Wanted = Parameters<typeof listOrders>[1]

/** @throws CliError that names the option. */
export function readWanted({ state, product, since, limit }: ListOptions): Wanted {
  const known = STATES.find((one) => one === state)
  if (state !== undefined && known === undefined) {
    throw new CliError(`--state must be one of ${STATES.join(', ')}.`, EXIT.usage)
  }
  return {
    state: known ?? null,
    product: product === undefined ? null : productOf(product),
    since: since === undefined ? 0 : timeFrom(since, '--since', systemClock.now()),
    limit: wholeNumber(limit, { option: '--limit', least: 1, most: MAX_LISTED }),
  }
}

export async function list(db: Db, wanted: Wanted): Promise<Answer> {
  // One more, to know whether there are more.
  const found = await listOrders(db, { ...wanted, limit: wanted.limit + 1 })
  const hasMore = found.length > wanted.limit
  const orders = found.slice(0, wanted.limit).map(listed)
  const rows = orders.map((order) => [
    ...[order.openedAt, order.state, order.product, order.planId, `${order.amountSats}`],
    ...[order.paymentHash ?? '-', order.orderId, order.publicId ?? '-'],
  ])
  const head = ['OPENED', 'STATE', 'PRODUCT', 'PLAN', 'SATS', 'PAYMENT HASH', 'ORDER', 'PUBLIC ID']
  return {
    json: { orders, hasMore },
    text: rows.length === 0 ? 'There are no such orders.\n' : columns([head, ...rows]),
    ...(hasMore ? { note: `Only the newest ${wanted.limit} are shown: --limit shows more.` } : {}),
  }
}

const listed = (order: ListedOrder) => ({
  openedAt: rfc3339(order.created_at),
  state: order.state,
  product: order.product,
  planId: order.plan_id,
  amountSats: order.amount_sats,
  paymentHash: order.payment_hash,
  orderId: order.order_id,
  publicId: order.public_id,
  extendsId: order.extends_id,
})

/** @throws CliError for a text that names no order. */
export function readName(name: string): OrderRef {
  const ref = readOrderRef(name)
  if (ref !== null) return ref
  throw new CliError(
    `${name} is neither a payment hash, nor an invoice, nor the id of an order or of what one bought.`,
    EXIT.usage,
  )
}

/** @throws CliError, also for a capability, which several orders may have bought and extended. */
export function readOneName(name: string): OrderRef {
  const ref = readName(name)
  if (ref.by !== 'public_id') return ref
  throw new CliError(
    `${name} can have several orders. To see them: mayfly order show ${name}`,
    EXIT.usage,
  )
}

/** @throws CliError if the store has nothing of this name. */
export async function show(db: Db, ref: OrderRef): Promise<Answer> {
  const now = systemClock.now()
  const shown = await showOrder(db, ref)
  switch (shown.kind) {
    case 'order':
      return told(shown, storyOf(shown.order, now), now)
    case 'deleted':
      return told(shown, storyOfDeleted(shown.tombstone, shown), now)
    case 'none':
      throw new CliError(NOT_FOUND[ref.by], EXIT.gone)
  }
}

/** Rows are deleted 30 days after their end; payment hashes outlive them. */
const NOT_FOUND: Record<OrderRef['by'], string> = {
  payment_hash:
    'This store has and had no order with that payment hash, or the order was never paid and is long gone. If your node says that the invoice is paid, you owe it: mayfly order restore --help',
  order_id:
    'There is no order with that id in this store. Orders are deleted 30 days after their end: ask the buyer for the invoice or its payment hash.',
  public_id:
    'No order in this store bought that. Orders are deleted 30 days after their end: ask the buyer for the invoice or its payment hash.',
}

const notFound = ({ by }: OrderRef): CliError => new CliError(NOT_FOUND[by], EXIT.gone)

function told(
  shown: Exclude<Shown, { kind: 'none' }>,
  { happened, tellBuyer, todo }: Story,
  now: number,
): Answer {
  const facts = factsOf(shown)
  const others = shown.kind === 'order' ? shown.others.map(listed) : []
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
      tellBuyer,
      todo,
      others,
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
  orderId: 'order',
  publicId: 'public id',
  extendsId: 'extends',
}

function factsOf(shown: Exclude<Shown, { kind: 'none' }>) {
  if (shown.kind === 'order') {
    const { order } = shown
    return {
      state: order.state as string,
      product: order.product,
      planId: order.plan_id,
      amountSats: order.amount_sats,
      network: order.network,
      paymentHash: order.payment_hash,
      orderId: order.order_id,
      publicId: order.public_id,
      extendsId: order.extends_id,
    }
  }
  const { tombstone, sale, refund } = shown
  return {
    state: 'deleted',
    product: sale?.product ?? null,
    planId: sale?.plan_id ?? null,
    amountSats: sale?.amount_sats ?? refund?.amount_sats ?? null,
    network: sale?.network ?? null,
    paymentHash: tombstone.payment_hash,
    orderId: null,
    publicId: null,
    extendsId: null,
  }
}

function inOneLine({ extendsId, publicId, ...order }: ReturnType<typeof listed>): string {
  const extended = publicId === null ? `extends ${extendsId}` : `replaced ${extendsId}`
  const what = extendsId === null ? `bought ${publicId}` : extended
  return `${order.openedAt}  ${order.state}  ${what}  ${order.paymentHash ?? '-'}`
}

const since = (at: number, now: number): string => {
  const seconds = Math.max(0, Math.round((now - at) / 1000))
  return at > now ? 'in the future' : `${span(seconds)} ago`
}

// Delivering

/** @throws CliError where nothing can be provisioned, with the reason. */
export async function deliver(config: Config, db: Db, ref: OrderRef): Promise<Answer> {
  const { orderId, order } = await found(db, ref)
  const outcome = await deliverOrder(await settlingDeps(config, db), orderId)
  switch (outcome.kind) {
    case 'provisioned': {
      const { publicId, isExtended } = outcome
      const expiresAt = rfc3339(outcome.expiresAt)
      return {
        json: { order, publicId, expiresAt },
        text: isExtended
          ? `${order} is settled: ${publicId} is extended until ${expiresAt}. The buyer's next poll says so.\n`
          : `${order} is settled as ${publicId} until ${expiresAt}. The buyer's next poll delivers it.\n`,
      }
    }
    case 'waits for its buyer':
      throw new CliError(
        `${order} waits for its buyer. A buyer who cannot prove the payment: mayfly order deliver ${order} --print`,
      )
    default:
      throw undelivered(ref, order, outcome)
  }
}

/**
 * The capability alone goes to stdout, as `mayfly import` takes it.
 * @throws CliError where nothing can be delivered, with the reason.
 */
export async function handOut(config: Config, db: Db, ref: OrderRef): Promise<Answer> {
  const { orderId, order } = await found(db, ref)
  const outcome = await handOutOrder(await settlingDeps(config, db), orderId)
  if (outcome.kind !== 'handed out') throw undelivered(ref, order, outcome)
  return {
    json: JSON.parse(outcome.body),
    text: `${outcome.body}\n`,
    note: outcome.extendedId
      ? `${order} is delivered and sealed: ${outcome.extendedId} is extended. This has no secret.`
      : `${order} is delivered and sealed. This is the only copy of its capability. Give it to nobody but the buyer.`,
  }
}

/** The id of an order, and how it is named in answers: never by its id. */
async function found(db: Db, ref: OrderRef): Promise<{ orderId: string; order: string }> {
  const shown = await showOrder(db, ref)
  if (shown.kind === 'none') throw notFound(ref)
  if (shown.kind === 'order') {
    const { order_id: orderId, payment_hash: paymentHash } = shown.order
    return { orderId, order: paymentHash ?? orderId }
  }
  throw new CliError(
    `${ref.value} was an order of this store, and was deleted after its end. It is never delivered twice.`,
  )
}

function undelivered(
  ref: OrderRef,
  order: string,
  outcome: Exclude<
    Provisioned | HandedOut,
    { kind: 'provisioned' | 'waits for its buyer' | 'handed out' }
  >,
): CliError {
  const ifItWasYourFault = `mayfly order refund ${order} --reason <text>`
  switch (outcome.kind) {
    case 'order not found':
      return notFound(ref)
    case 'not paid':
      return new CliError(`${order} is ${outcome.state}: there is nothing to deliver.`)
    case 'other secret':
      return new CliError(
        `${order} was made under another secret. Set MAYFLY_SECRET to the secret of the service.`,
        EXIT.usage,
      )
    case 'refused':
      return new CliError(
        `${order} still cannot be provisioned: ${outcome.reason}. Nothing was changed. Mend the cause, or pay it back, and then: ${ifItWasYourFault}`,
      )
    case 'already delivered': {
      const when = outcome.at === null ? '' : ` at ${rfc3339(outcome.at)}`
      return new CliError(
        `${order} was delivered${when}, and is never delivered twice. If the buyer did not receive it, pay it back, and then: ${ifItWasYourFault}`,
      )
    }
    case 'over':
      return new CliError(
        `The capability of ${order} ended at ${rfc3339(outcome.at)} and was never collected. If that was your fault, pay it back, and then: ${ifItWasYourFault}`,
      )
  }
}

// Refunding

/** @throws CliError where nothing can be refunded, with the reason. */
export async function refund(
  db: Db,
  { ref, reason }: { ref: OrderRef; reason: string },
): Promise<Answer> {
  const deps = { db, clock: systemClock, products: PROVISIONINGS }
  const outcome = await refundOrder(deps, ref, reason)
  switch (outcome.kind) {
    case 'refunded': {
      const { amountSats, publicId } = outcome
      const works =
        publicId === null ? '' : ` What it bought works until its end: mayfly takedown --help\n`
      return {
        json: { order: ref.value, refunded: true, amountSats, publicId },
        text: `${ref.value} is recorded as refunded, ${amountSats} sats.\n${works.trimStart()}`,
      }
    }
    case 'refunded before': {
      const when = outcome.at === null ? '' : ` at ${rfc3339(outcome.at)}`
      throw new CliError(`${ref.value} was recorded as refunded${when}.`)
    }
    case 'not paid':
      throw new CliError(
        `${ref.value} is ${outcome.state}: this store knows of no payment. Nothing was changed.`,
      )
    case 'changed':
      throw new CliError(
        `${ref.value} is ${outcome.state} by now, and was not refunded: mayfly order show ${ref.value}`,
      )
    case 'order not found':
      throw new CliError(
        `${NOT_FOUND[ref.by]} To record the refund of an order that this store has lost, add --product and --plan.`,
        EXIT.gone,
      )
  }
}

/** @throws CliError where nothing can be refunded, with the reason. */
export function refundOfLost(
  config: Config,
  db: Db,
  { lost, reason }: { lost: LostOrder; reason: string },
): Promise<Answer> {
  return withLost({ config, db }, lost, async (deps, order) => {
    const outcome = await refundLost(deps, order, reason)
    const { paymentHash } = order
    if (outcome.kind !== 'refunded') throw unrestored(order, outcome)
    const { amountSats } = outcome
    return {
      json: { order: paymentHash, refunded: true, amountSats, publicId: null },
      text: `${paymentHash} is recorded as refunded, ${amountSats} sats.\n`,
    }
  })
}

// Restoring

export type LostOptions = { product: string; plan: string; order?: string; preimageFile?: string }

/** The order as its buyer and the operator know it. */
export type LostOrder = Omit<Lost, 'plan' | 'memo'>

/** @throws CliError for an argument that cannot be meant. */
export function readLost(name: string, options: LostOptions): LostOrder {
  const { order = null, preimageFile } = options
  const { by, value: paymentHash } = readName(name)
  if (by !== 'payment_hash') {
    throw new CliError(`${name} is neither a payment hash nor an invoice.`, EXIT.usage)
  }
  if (order !== null && !isId('order', order)) {
    throw new CliError('--order must be the id of an order, order_….', EXIT.usage)
  }
  return {
    paymentHash,
    product: productOf(options.product),
    planId: planOf(options.plan),
    orderId: order,
    preimage:
      preimageFile === undefined
        ? null
        : withFile(preimageFile, () => readFileSync(preimageFile, 'utf8').trim()),
  }
}

function productOf(text: string): Product {
  if (isProduct(text)) return text
  throw new CliError(`--product must be one of ${PRODUCT_NAMES.join(', ')}.`, EXIT.usage)
}

/** @throws CliError where nothing can be restored, with the reason. */
export function restore(config: Config, db: Db, lost: LostOrder): Promise<Answer> {
  return withLost({ config, db }, lost, async (deps, order) => {
    const outcome = await restoreOrder(deps, order)
    const { paymentHash, orderId } = order
    if (outcome.kind !== 'restored') throw unrestored(order, outcome)
    const { publicId } = outcome
    const expiresAt = rfc3339(outcome.expiresAt)
    const proof = orderId === null ? 'credential' : 'credential, preimage or key'
    return {
      json: { paymentHash, publicId, expiresAt },
      text:
        `${paymentHash} is settled as ${publicId} until ${expiresAt}. The buyer’s ${proof} collects it. ` +
        `You can deliver it yourself: mayfly order deliver ${paymentHash} --print\n`,
    }
  })
}

function unrestored(
  { paymentHash, product }: Lost,
  outcome: Exclude<Restoring | RefundingLost, { kind: 'restored' | 'refunded' }>,
): CliError {
  switch (outcome.kind) {
    case 'in the store':
      return new CliError(
        `${paymentHash}, or the id of --order, is in this store and is ${outcome.state}: mayfly order show ${paymentHash}`,
      )
    case 'of the past':
      return new CliError(
        `${paymentHash} was an order of this store. It was delivered or expired long ago, and is never delivered twice.`,
      )
    case 'not paid':
      return new CliError(
        outcome.node === 'unknown'
          ? `The node does not know the invoice of ${paymentHash}. If the node has lost it, and the log named this hash as proven, give the buyer’s preimage: --preimage-file.`
          : `The node says that ${paymentHash} is ${outcome.node} and not paid. Nothing was changed.`,
      )
    case 'wrong preimage':
      return new CliError(`That is not the preimage of ${paymentHash}. Nothing was changed.`)
    case 'bytes are lost':
      return new CliError(
        `A ${product} cannot be restored: the content that the buyer sent is lost with the order. Pay it back, and record that: mayfly order refund ${paymentHash} --product ${product} --plan <plan> --reason <text>`,
      )
  }
}

// What the commands work with: the service's node, secrets and products

const settlingDeps = async (config: Config, db: Db) => ({
  db,
  secrets: createSecrets(await secretsGiven(config)(db)),
  clock: systemClock,
  products: PROVISIONINGS,
})

type LostDeps = Parameters<typeof restoreOrder>[0]

/** Works on a lost order with the node of the settings. */
async function withLost(
  { config, db }: { config: Config; db: Db },
  order: LostOrder,
  work: (deps: LostDeps, lost: Lost) => Promise<Answer>,
): Promise<Answer> {
  const { product, planId } = order
  const memo = `Mayfly ${product.toUpperCase()} ${planId}`
  // The plan as it is sold now, or was: an order of a plan that was withdrawn is still owed.
  const lost: Lost = { ...order, memo, plan: readAllPlans(config.catalog)[product][planId] }
  const settling = await settlingDeps(config, db)
  return withNode(config, db, (lightning) => work({ ...settling, lightning }, lost))
}

/**
 * Works with the node of the settings, if the store belongs to it.
 * @throws CliError for a node that does not answer, or that these settings do not open.
 * @throws ConfigError where the store belongs to another node.
 */
async function withNode<T>(
  config: Config,
  db: Db,
  work: (lightning: Lightning) => Promise<T>,
): Promise<T> {
  const node = await openNode(config, db)
  try {
    const { network } = await node.lightning.info()
    await bindStore(db, { backend: config.lightningUrl.kind, network })
    return await work(node.lightning)
  } catch (error) {
    throw error instanceof NodeError ? new CliError(`${error.message}.`, EXIT.later) : error
  } finally {
    await node.close()
  }
}

async function openNode(config: Config, db: Db): Promise<Opened> {
  const warn = (reason: string): void => void process.stderr.write(`${reason}\n`)
  const node = await openLightning(config.lightningUrl.url, { db, clock: systemClock, warn }).catch(
    (error: unknown) => {
      // A file or a form that the setting names: the message says which.
      throw isSettingsError(error) ? new CliError(error.message, EXIT.usage) : error
    },
  )
  const { problem } = node
  if (problem === null) return node
  await node.close()
  throw new CliError(problem.sentence, problem.isAway ? EXIT.later : EXIT.usage)
}

/** Reading a URL or its files throws a plain Error. Any other kind is a bug. */
const isSettingsError = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'Error'
