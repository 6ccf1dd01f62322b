/** `mayfly order restore`: brings back a paid order that this store has lost, beside the service. */
import { readFileSync } from 'node:fs'
import type { Config } from '../../config.ts'
import type { Db } from '../../db/db.ts'
import { rfc3339 } from '../../lib/clock.ts'
import { isId } from '../../lib/ids.ts'
import { isProduct, PRODUCT_NAMES, type Product } from '../../lib/product-names.ts'
import { type Lost, noteLostRefund, type Restoring, restoreOrder } from '../../payment/restoring.ts'
import { readAllPlans } from '../../products.ts'
import { withFile } from '../data-folder.ts'
import { planOf } from '../drafts.ts'
import { CliError, EXIT } from '../exit.ts'
import type { Answer } from './command.ts'
import { settlingDeps, withNode } from './order-deps.ts'

export type RestoreOptions = {
  product: string
  plan: string
  order?: string
  preimageFile?: string
  refunded?: true
}

/** The order as its buyer and the operator know it. */
export type LostOrder = Omit<Lost, 'plan' | 'memo'> & { isRefunded: boolean }
/** @throws CliError for an argument that cannot be meant. */
export function readLost(paymentHash: string, options: RestoreOptions): LostOrder {
  const { order = null, preimageFile } = options
  if (!/^[0-9a-f]{64}$/.test(paymentHash)) {
    throw new CliError(`${paymentHash} is not a payment hash (64 hex digits).`, EXIT.usage)
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
    isRefunded: options.refunded ?? false,
  }
}

function productOf(text: string): Product {
  if (isProduct(text)) return text
  throw new CliError(`--product must be one of ${PRODUCT_NAMES.join(', ')}.`, EXIT.usage)
}

/** @throws CliError where nothing can be restored, with the reason. */
export async function restore(
  config: Config,
  db: Db,
  { isRefunded, ...order }: LostOrder,
): Promise<Answer> {
  const { product, planId } = order
  const memo = `Mayfly ${product.toUpperCase()} ${planId}`
  // The plan as it is sold now, or was: an order of a plan that was withdrawn is still owed.
  const lost: Lost = { ...order, memo, plan: readAllPlans(config.catalog)[product][planId] }
  const settling = await settlingDeps(config, db)
  return withNode(config, db, async (lightning) => {
    const deps = { ...settling, lightning }
    return answerFor(
      lost,
      await (isRefunded ? noteLostRefund(deps, lost) : restoreOrder(deps, lost)),
    )
  })
}

function answerFor({ paymentHash, product, orderId }: Lost, outcome: Restoring): Answer {
  switch (outcome.kind) {
    case 'restored': {
      const { publicId } = outcome
      const expiresAt = rfc3339(outcome.expiresAt)
      const proof = orderId === null ? 'credential' : 'credential, preimage or key'
      return {
        json: { paymentHash, publicId, expiresAt },
        text:
          `${paymentHash} is settled as ${publicId} until ${expiresAt}. The buyer’s ${proof} collects it. ` +
          `You can deliver it yourself: mayfly order repair ${paymentHash} --deliver\n`,
      }
    }
    case 'noted as refunded':
      return {
        json: { paymentHash, refunded: true },
        text: `${paymentHash} is recorded as refunded. Nothing is owed.\n`,
      }
    case 'in the store':
      throw new CliError(
        `${paymentHash}, or the id of --order, is in this store and is ${outcome.state}: mayfly order show ${paymentHash}`,
      )
    case 'of the past':
      throw new CliError(
        `${paymentHash} was an order of this store. It was delivered or expired long ago, and is never delivered twice.`,
      )
    case 'not paid':
      throw new CliError(
        outcome.node === 'unknown'
          ? `The node does not know the invoice of ${paymentHash}. If the node has lost it, and the log named this hash as proven, give the buyer’s preimage: --preimage-file.`
          : `The node says that ${paymentHash} is ${outcome.node} and not paid. Nothing was changed.`,
      )
    case 'wrong preimage':
      throw new CliError(`That is not the preimage of ${paymentHash}. Nothing was changed.`)
    case 'bytes are lost':
      throw new CliError(
        `A ${product} cannot be restored: the content that the buyer sent is lost with the order. Refund it, and then record that: the same command with --refunded`,
      )
  }
}
