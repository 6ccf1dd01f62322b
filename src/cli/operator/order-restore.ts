/** `mayfly order restore`: makes good a paid order that this store has lost, beside the service. */
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type Config, ConfigError } from '../../config.ts'
import type { Db } from '../../db/db.ts'
import { rfc3339, systemClock } from '../../lib/clock.ts'
import { isId } from '../../lib/ids.ts'
import { isPlanId, isProduct, type PlanId, type Product } from '../../lib/product-names.ts'
import { type Lost, noteLostRefund, type Restoring, restoreOrder } from '../../payment/restoring.ts'
import { readAllPlans } from '../../products.ts'
import { secretsGiven } from '../../secret-file.ts'
import { createSecrets } from '../../secrets/secrets.ts'
import { operateOnStore, type Said } from './command.ts'
import { provisionings, withNode } from './order-deps.ts'

export const RESTORE_USAGE = `  order restore <paymentHash> --product <catch|pulse|whisper> --plan <plan>
                           make good a paid order that this store has lost (restored backup);
                           --order <id>            the id that the buyer has
                           --preimage-file <file>  the proof, where the node has lost the invoice
                           --refunded              note that you have paid it back instead
`

type Asked = Omit<Lost, 'plan' | 'memo' | 'preimage'> & {
  preimageFile: string | null
  isRefunded: boolean
}

/** Null where the arguments are none of this command's. */
export async function orderRestore(args: string[]): Promise<number | null> {
  const asked = readAsked(args)
  return asked && operateOnStore((config, db) => restore(config, db, asked))
}

function readAsked(args: string[]): Asked | null {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        product: { type: 'string' },
        plan: { type: 'string' },
        order: { type: 'string' },
        'preimage-file': { type: 'string' },
        refunded: { type: 'boolean' },
      },
    })
    const { product, plan, order = null, 'preimage-file': preimageFile = null } = values
    const [paymentHash = '', ...rest] = positionals
    const isWhole =
      /^[0-9a-f]{64}$/.test(paymentHash) &&
      rest.length === 0 &&
      isPlanId(plan) &&
      isProduct(product) &&
      (order === null || isId('order', order))
    if (!isWhole) return null
    const isRefunded = values.refunded === true
    return { paymentHash, product, planId: plan, orderId: order, preimageFile, isRefunded }
  } catch {
    // An option that there is not.
    return null
  }
}

async function restore(config: Config, db: Db, asked: Asked): Promise<Said> {
  const { product, planId, isRefunded, preimageFile } = asked
  const plan = planIn(config, product, planId)
  const preimage = preimageFile === null ? null : readText(preimageFile)
  const lost: Lost = {
    ...{ paymentHash: asked.paymentHash, product, planId, orderId: asked.orderId },
    ...{ plan, preimage, memo: `Mayfly ${product.toUpperCase()} ${planId}` },
  }
  const secrets = createSecrets(await secretsGiven(config)(db))
  const products = provisionings(config, db)
  return withNode(config, db, async (lightning) => {
    const deps = { db, lightning, secrets, clock: systemClock, products }
    return said(lost, await (isRefunded ? noteLostRefund(deps, lost) : restoreOrder(deps, lost)))
  })
}

/** @throws ConfigError for a file that cannot be read. */
function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new ConfigError(`--preimage-file: ${error instanceof Error ? error.message : error}`)
  }
}

/** The plan as it is sold now, or was: what is not on sale any more can still be owed. */
function planIn(config: Config, product: Product, planId: PlanId): Lost['plan'] {
  return readAllPlans(config.catalog)[product][planId]
}

function said({ paymentHash, product, orderId }: Lost, outcome: Restoring): Said {
  const no = (text: string): Said => ({ isDone: false, text: `${text}\n` })
  switch (outcome.kind) {
    case 'restored':
      return {
        isDone: true,
        text:
          `${paymentHash} is settled as ${outcome.publicId} until ${rfc3339(outcome.expiresAt)}. ` +
          `${orderId === null ? 'The buyer’s credential' : 'The buyer’s credential, preimage or key'} delivers it; ` +
          `so does: mayfly order repair ${paymentHash} --deliver\n`,
      }
    case 'noted as refunded':
      return { isDone: true, text: `${paymentHash} is noted as refunded. Nothing is owed.\n` }
    case 'in the store':
      return no(
        `${paymentHash}, or the id of --order, is in this store, and is ${outcome.state}: mayfly order show ${paymentHash}`,
      )
    case 'of the past':
      return no(
        `${paymentHash} was an order of this store. It was delivered or ran out long ago, and nothing is handed out twice.`,
      )
    case 'not paid':
      return no(
        outcome.node === 'unknown'
          ? `The node does not know the invoice of ${paymentHash}. If it has lost it, and the log named this hash as proven, give the preimage of the buyer: --preimage-file.`
          : `${paymentHash} is ${outcome.node} and not paid, says the node. Nothing was changed.`,
      )
    case 'wrong preimage':
      return no(`That preimage does not open ${paymentHash}. Nothing was changed.`)
    case 'bytes are lost':
      return no(
        `A ${product} cannot be restored: the bytes that the buyer sent are lost with the order. Pay it back, and then note it: the same command with --refunded`,
      )
  }
}
