/** The work of `mayfly order`. Each command tells what it changed, or why it changed nothing. */
import type { Db } from '../../db/db.ts'
import { rfc3339 } from '../../lib/clock.ts'
import { isId } from '../../lib/ids.ts'
import type { PlanId, Product } from '../../lib/product-names.ts'
import type { Lightning } from '../../lightning/lightning.ts'
import { NodeError } from '../../lightning/node/error.ts'
import { openLightning } from '../../lightning/open.ts'
import {
  deliverOrder,
  handOutOrder,
  type Lost,
  type Refunded,
  Refusal,
  refundLost,
  refundOrder,
  restoreOrder,
  unknownOrder,
} from '../../payment/operator.ts'
import {
  listOrders,
  type OrderRef,
  readOrderRef,
  type Shown,
  showOrder,
} from '../../payment/showing.ts'
import type { OrderRow } from '../../payment/store.ts'
import { type Story, storyOf, storyOfDeleted } from '../../payment/story.ts'
import { createSecrets } from '../../secrets/secrets.ts'
import { PROVISIONINGS, readAllPlans } from '../../service/products.ts'
import { secretsGiven } from '../../service/secret-file.ts'
import { asConfigError } from '../../service/start-checks.ts'
import { bindStore } from '../../service/store-identity.ts'
import { firstLine } from '../ask.ts'
import { CliError, EXIT, misuse } from '../exit.ts'
import { away, columns } from '../text.ts'
import { type Answer, type Store, withStore } from './command.ts'

// Listing and showing

export async function list(db: Db, wanted: Parameters<typeof listOrders>[1]): Promise<Answer> {
  // One more, to know whether there are more.
  const found = await listOrders(db, { ...wanted, limit: wanted.limit + 1 })
  const hasMore = found.length > wanted.limit
  const orders = found.slice(0, wanted.limit).map(listed)
  const rows = orders.map((order) => LISTED.map((fact) => String(order[fact] ?? '-')))
  const head = LISTED.map((fact) => LABELS[fact].toUpperCase())
  return {
    json: { orders, hasMore },
    text: rows.length === 0 ? 'There are no such orders.\n' : columns([head, ...rows]),
    ...(hasMore ? { note: `Only the newest ${wanted.limit} are shown: --limit shows more.` } : {}),
  }
}

const listed = (order: OrderRow) => ({
  openedAt: rfc3339(order.created_at),
  state: order.state,
  product: order.product,
  planId: order.plan_id,
  amountSats: order.amount_sats,
  network: order.network,
  paymentHash: order.payment_hash,
  orderId: order.order_id,
  publicId: order.public_id,
  extendsId: order.extends_id,
})

/** @throws CliError for a text that names no order. */
export function readName(name: string): OrderRef {
  const ref = readOrderRef(name)
  if (ref !== null) return ref
  throw misuse(
    `${name} is neither a payment hash, nor an invoice, nor the id of an order or of what one bought.`,
  )
}

/** @throws CliError, also for a capability, which several orders may have bought and extended. */
export function readOneName(name: string): OrderRef {
  const ref = readName(name)
  if (ref.by !== 'public_id') return ref
  throw misuse(`${name} can have several orders. To see them: mayfly order show ${name}`)
}

/** @throws Refusal if the store has nothing of this name. */
export async function show(
  { db, clock }: Pick<Store, 'db' | 'clock'>,
  ref: OrderRef,
): Promise<Answer> {
  const now = clock.now()
  const shown = await showOrder(db, ref)
  switch (shown.kind) {
    case 'order':
      return told(shown, storyOf(shown.order, now), now)
    case 'deleted':
      return told(shown, storyOfDeleted(shown.tombstone, shown), now)
    case 'none':
      throw unknownOrder(ref)
  }
}

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
      .map(([name, value]) => [LABELS[name as keyof typeof LABELS], String(value)]),
    ...happened.map(({ at, says }, i) => [
      i === 0 ? 'story' : '',
      `${rfc3339(at)}  ${says} (${away(rfc3339(at), now)})`,
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
  openedAt: 'opened',
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

/** The columns of a list. */
const LISTED = (Object.keys(LABELS) as (keyof typeof LABELS)[]).filter(
  (fact) => fact !== 'network' && fact !== 'extendsId',
)

function factsOf(shown: Exclude<Shown, { kind: 'none' }>) {
  if (shown.kind === 'order') {
    const { openedAt, ...facts } = listed(shown.order)
    return facts
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

// Delivering

/** @throws Refusal where nothing can be provisioned. */
export async function deliver(on: Store, ref: OrderRef): Promise<Answer> {
  const done = await deliverOrder(await settlingDeps(on), ref)
  const { order, publicId, isExtended, isRestored, ...times } = done
  const expiresAt = rfc3339(times.expiresAt)
  const settled = `${order} is settled as ${publicId} until ${expiresAt}. The buyer's`
  const next = isRestored ? `credential collects it. ${byHand(order)}` : 'next poll delivers it.'
  return {
    json: { order, publicId, expiresAt },
    text: isExtended
      ? `${order} is settled: ${publicId} is extended until ${expiresAt}. The buyer's next poll says so.\n`
      : `${settled} ${next}\n`,
  }
}

const byHand = (order: string): string =>
  `You can deliver it yourself: mayfly order deliver ${order} --print`

/**
 * The capability alone goes to stdout, as `mayfly import` takes it.
 * @throws Refusal where nothing can be delivered.
 */
export async function handOut(on: Store, ref: OrderRef): Promise<Answer> {
  const { order, body, extendedId } = await handOutOrder(await settlingDeps(on), ref)
  return {
    json: JSON.parse(body),
    text: `${body}\n`,
    note: extendedId
      ? `${order} is delivered and sealed: ${extendedId} is extended. This has no secret.`
      : `${order} is delivered and sealed. This is the only copy of its capability. Give it to nobody but the buyer.`,
  }
}

// Refunding

/** @throws Refusal where nothing can be refunded. */
export async function refund(
  { db, clock }: Pick<Store, 'db' | 'clock'>,
  { ref, ...how }: { ref: OrderRef; reason: string; isSettled?: boolean },
): Promise<Answer> {
  const deps = { db, clock, products: PROVISIONINGS }
  return refundedAs(ref.value, await refundOrder(deps, ref, how))
}

/** @throws Refusal where nothing can be refunded. */
export function refundOfLost(
  on: Store,
  { lost, reason }: { lost: LostOrder; reason: string },
): Promise<Answer> {
  return withLost(on, lost, async (deps, order) =>
    refundedAs(order.paymentHash, await refundLost(deps, order, reason)),
  )
}

function refundedAs(order: string, { amountSats, publicId }: Refunded): Answer {
  const works =
    publicId === null ? '' : `What it bought works until its end: mayfly takedown --help\n`
  return {
    json: { order, refunded: true, amountSats, publicId },
    text: `${order} is recorded as refunded, ${amountSats} sats.\n${works}`,
  }
}

// Restoring

/** The order as its buyer and the operator know it. */
export type LostOrder = Omit<Lost, 'plan'>

/** @throws CliError for an argument that cannot be meant. */
export function readLost(
  name: string,
  {
    product,
    plan: planId,
    order,
    preimageFile,
  }: { product: Product; plan: PlanId; order?: string; preimageFile?: string },
): LostOrder {
  const { by, value: paymentHash } = readName(name)
  if (by !== 'payment_hash') {
    throw misuse(`${name} is neither a payment hash nor an invoice.`)
  }
  if (order !== undefined && !isId('order', order)) {
    throw misuse('--order must be the id of an order, order_….')
  }
  return {
    paymentHash,
    product,
    planId,
    orderId: order ?? null,
    preimage: preimageFile === undefined ? null : firstLine(preimageFile).trim(),
  }
}

/** @throws Refusal where nothing can be restored. */
export function restore(on: Store, lost: LostOrder): Promise<Answer> {
  return withLost(on, lost, async (deps, order) => {
    const { publicId, ...times } = await restoreOrder(deps, order)
    const { paymentHash, orderId } = order
    const expiresAt = rfc3339(times.expiresAt)
    const proof = orderId === null ? 'credential' : 'credential, preimage or key'
    return {
      json: { paymentHash, publicId, expiresAt },
      text:
        `${paymentHash} is settled as ${publicId} until ${expiresAt}. The buyer’s ${proof} collects it. ` +
        `${byHand(paymentHash)}\n`,
    }
  })
}

// What the commands work with: the service's node, secrets and products

const EXITS = { unknown: EXIT.gone, secret: EXIT.usage, state: EXIT.failed }

/** Works on the store. @throws CliError for what is refused, with the reason. */
export async function onStore(work: (on: Store) => Promise<Answer>): Promise<Answer> {
  try {
    return await withStore(work)
  } catch (error) {
    throw error instanceof Refusal ? new CliError(error.message, EXITS[error.kind]) : error
  }
}

const settlingDeps = async ({ config, db, clock }: Store) => ({
  db,
  secrets: createSecrets(await secretsGiven(config)(db)),
  clock,
  products: PROVISIONINGS,
})

type LostDeps = Parameters<typeof restoreOrder>[0]

/** Works on a lost order with the node of the settings. */
async function withLost(
  on: Store,
  order: LostOrder,
  work: (deps: LostDeps, lost: Lost) => Promise<Answer>,
): Promise<Answer> {
  const { product, planId } = order
  // The plan as it is sold now, or was: an order of a plan that was withdrawn is still owed.
  const lost: Lost = { ...order, plan: readAllPlans(on.config.catalog)[product][planId] }
  const settling = await settlingDeps(on)
  return withNode(on, (lightning) => work({ ...settling, lightning }, lost))
}

/**
 * Works with the node of the settings, if the store belongs to it.
 * @throws CliError for a node that does not answer, or that these settings do not open.
 * @throws ConfigError where the store belongs to another node.
 */
async function withNode<T>(
  { config, db, clock }: Store,
  work: (lightning: Lightning) => Promise<T>,
): Promise<T> {
  const warn = (reason: string): void => void process.stderr.write(`${reason}\n`)
  const { url, kind: backend } = config.lightningUrl
  const node = await asConfigError(() => openLightning(url, { db, clock, warn }))
  try {
    const { problem, lightning } = node
    if (problem) throw new CliError(problem.sentence, problem.isAway ? EXIT.later : EXIT.usage)
    const { network } = await lightning.info()
    await bindStore(db, { backend, network })
    return await work(lightning)
  } catch (error) {
    throw error instanceof NodeError ? new CliError(`${error.message}.`, EXIT.later) : error
  } finally {
    await node.close()
  }
}
