/** The work of `mayfly order`. Each action reports what it changed, or why it changed nothing. */

import type { Config } from '../../config.ts'
import type { Db } from '../../db/db.ts'
import { rfc3339, systemClock } from '../../lib/clock.ts'
import { handOutOrder } from '../../payment/handing-out.ts'
import {
  closeOrder,
  isOrderName,
  noteRefund,
  type OrderFacts,
  orderFacts,
  orderIdOf,
  type Repair,
  repairOrder,
} from '../../payment/repair.ts'
import { PROVISIONINGS } from '../../products.ts'
import { CliError, EXIT } from '../exit.ts'
import type { Answer } from './command.ts'
import { settlingDeps, withNode } from './order-deps.ts'

/** An order, under the name that the operator gave. */
export type Named = { orderId: string; name: string }
/** @throws CliError where nothing can be done, with the reason. */
export type OrderWork = (config: Config, db: Db, order: Named) => Promise<Answer>

/** @throws CliError for a malformed name. */
export function checkOrderName(name: string): void {
  if (isOrderName(name)) return
  throw new CliError(`${name} is neither a payment hash nor the id of an order.`, EXIT.usage)
}

/** @throws CliError if the store does not have the order. */
export async function findOrder(db: Db, name: string): Promise<Named> {
  const orderId = await orderIdOf(db, name)
  if (orderId === null) throw notFound(name)
  return { orderId, name }
}

export async function show(_config: Config, db: Db, { orderId, name }: Named): Promise<Answer> {
  const facts = await orderFacts(db, orderId)
  if (!facts) throw notFound(name)
  const fields = fieldsOf(facts)
  return {
    json: Object.fromEntries(fields.map(([field, value]) => [camelCase(field), value])),
    text: fields
      .filter(([, value]) => value !== null)
      .map(([field, value]) => `${field.padEnd(18)}${value}\n`)
      .join(''),
  }
}

export async function close(
  config: Config,
  db: Db,
  { orderId, name: order }: Named,
): Promise<Answer> {
  const products = PROVISIONINGS
  const outcome = await withNode(config, db, (lightning) =>
    closeOrder({ db, lightning, clock: systemClock, products }, orderId),
  )
  switch (outcome.kind) {
    case 'closed': {
      const why =
        outcome.node === 'dead'
          ? 'its invoice cannot be paid any more'
          : 'the node does not know its invoice'
      return { json: { order, closed: true, why }, text: `${order} is closed: ${why}.\n` }
    }
    case 'order not found':
      throw notFound(order)
    case 'not open':
      throw new CliError(`${order} is ${outcome.state} and not open.`)
    case 'quote stands':
      throw new CliError(
        `A buyer who has paid ${order} can prove it until ${rfc3339(outcome.until)}. Close it after that.`,
      )
    case 'other node':
      throw new CliError(
        `The node does not know the invoice of ${order}, and may not be the node that made it. The invoice may have been paid there: set MAYFLY_LIGHTNING_URL to that node.`,
      )
    case 'node knows it':
      throw new CliError(
        outcome.state === 'settled'
          ? `The node says that ${order} is paid. The service will settle it at its next look.`
          : `The node says that the invoice of ${order} can still be paid.`,
      )
  }
}

export async function repair(
  config: Config,
  db: Db,
  { orderId, name: order }: Named,
): Promise<Answer> {
  const outcome = await repairOrder(await settlingDeps(config, db), orderId)
  switch (outcome.kind) {
    case 'repaired': {
      const { publicId, isExtended } = outcome
      const expiresAt = rfc3339(outcome.expiresAt)
      return {
        json: { order, publicId, expiresAt },
        text: isExtended
          ? `${order} is settled: ${publicId} is extended until ${expiresAt}. The buyer's next poll says so.\n`
          : `${order} is settled as ${publicId} until ${expiresAt}. The buyer's next poll delivers it.\n`,
      }
    }
    case 'not unfulfilled':
      throw notUnfulfilled(order, outcome.state)
    default:
      throw notRepaired(order, outcome)
  }
}

/** The capability alone goes to stdout, as `mayfly import` takes it. */
export async function deliver(
  config: Config,
  db: Db,
  { orderId, name: order }: Named,
): Promise<Answer> {
  const outcome = await handOutOrder(await settlingDeps(config, db), orderId)
  switch (outcome.kind) {
    case 'handed out':
      return {
        json: JSON.parse(outcome.body),
        text: `${outcome.body}\n`,
        note: outcome.extendedId
          ? `${order} is delivered and sealed: ${outcome.extendedId} is extended. This has no secret.`
          : `${order} is delivered and sealed. This is the only copy of its capability. Give it to nobody but the buyer.`,
      }
    case 'not settled':
      throw new CliError(`${order} is ${outcome.state}: there is nothing to deliver.`)
    case 'already delivered': {
      const when = outcome.at === null ? '' : ` at ${rfc3339(outcome.at)}`
      throw new CliError(
        `${order} was delivered${when}, and is never delivered twice. If the buyer did not receive it, refund it.`,
      )
    }
    case 'over':
      throw new CliError(
        `The capability of ${order} ended at ${rfc3339(outcome.at)} and was never collected. Refund it if that was your fault.`,
      )
    default:
      throw notRepaired(order, outcome)
  }
}

export async function refunded(
  _config: Config,
  db: Db,
  { orderId, name: order }: Named,
): Promise<Answer> {
  const deps = { db, clock: systemClock, products: PROVISIONINGS }
  const outcome = await noteRefund(deps, orderId)
  switch (outcome.kind) {
    case 'refunded':
      return {
        json: { order, refunded: true },
        text: `${order} is recorded as refunded. Its buyer will see that.\n`,
      }
    case 'order not found':
      throw notFound(order)
    case 'not unfulfilled':
      throw notUnfulfilled(order, outcome.state)
  }
}

function notRepaired(
  name: string,
  outcome: Exclude<Repair, { kind: 'repaired' | 'not unfulfilled' }>,
): CliError {
  switch (outcome.kind) {
    case 'order not found':
      return notFound(name)
    case 'other secret':
      return new CliError(
        `${name} was made under another secret. Set MAYFLY_SECRET to the secret of the service.`,
        EXIT.usage,
      )
    case 'refused':
      return new CliError(
        `${name} still cannot be provisioned: ${outcome.reason}. Nothing was changed. Fix the cause, or refund the order.`,
      )
  }
}

const notUnfulfilled = (name: string, state: string): CliError =>
  new CliError(`${name} is ${state} and not paid_unfulfilled.`)

const notFound = (name: string): CliError =>
  new CliError(`There is no order ${name} in this store.`, EXIT.gone)

/** Fields and values, times as RFC 3339. An order that was never looked up has 0 for that time. */
function fieldsOf(facts: OrderFacts): [field: string, value: string | number | null][] {
  return Object.entries(facts).map(([field, value]) => {
    if (value === null || (field === 'looked_up_at' && value === 0)) return [field, null]
    return [field, field.endsWith('_at') ? rfc3339(Number(value)) : value]
  })
}

const camelCase = (field: string): string =>
  field.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
