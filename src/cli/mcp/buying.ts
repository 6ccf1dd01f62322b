/** The tools that buy: the same vault and budget as the command line. */
import type { InputRequiredResult } from '@modelcontextprotocol/server'
import type { PlanId } from '../../lib/product-names.ts'
import type { PurchaseResult } from '../../mcp-tools/purchases.ts'
import { CliError, EXIT } from '../exit.ts'
import { purchase, resume, type WhisperTerms } from '../purchase.ts'
import { openPurchase, unknownBeside } from '../vault/purchases.ts'
import { checkName, findSaved, type Product } from '../vault/saved.ts'
import { type Asking, confirm } from './confirm.ts'
import { collectExtension } from './extending.ts'
import { checkCeilings, costing, joined, orInvoice, paying, priceOf, underWay } from './paying.ts'
import { settled } from './results.ts'

export type PlanInput = { planId: PlanId; name: string }
export type CheckInput = { name: string }

/** What is bought. */
export type Wanted = {
  product: Product
  planId: PlanId
  name: string
  /** The words for the question. */
  what: string
  /** Tells two purchases of one plan apart. */
  digest?: string
  /** Seals a whisper, for a new purchase. */
  seal?: () => Promise<WhisperTerms>
}

export const buyInbox = (call: Asking, input: PlanInput): Promise<object> =>
  buyPlan(call, input, { product: 'catch', what: 'a webhook inbox' })

export const buyMonitor = (call: Asking, input: PlanInput): Promise<object> =>
  buyPlan(call, input, { product: 'pulse', what: 'a heartbeat monitor' })

async function buyPlan(
  call: Asking,
  { planId, name }: PlanInput,
  { product, what }: { product: 'catch' | 'pulse'; what: string },
): Promise<object> {
  const saved = findSaved(call.cli, name)
  if (saved === null) return buy(call, { product, planId, name, what })
  if (saved.capability.product === product && saved.planId === planId) {
    return settled(call.session, name, saved)
  }
  throw new CliError(`Something else is saved as ${name}. Choose another name. Nothing was paid.`)
}

/** Buys, unless the same purchase is under way already. Asks the person first where money moves. */
export async function buy(
  call: Asking,
  wanted: Wanted,
): Promise<PurchaseResult | InputRequiredResult> {
  const { session, cli, ctx } = call
  const { product, planId, name, digest = '' } = wanted
  const what = `${product} ${planId} ${digest}`
  const before = joined(session, name, what)
  if (before !== null) return before
  const baseUrl = cli.url
  const record = openPurchase(cli, checkName(name))
  const priceSats = await priceOf(cli, { baseUrl, product, planId })
  const beside = record === null ? besideOf(call, wanted) : undefined
  if (cli.walletUrl !== null && record?.preimage === undefined) {
    // An interrupted purchase may have its part of the budget already.
    checkCeilings(cli, { priceSats, isNew: record === null })
    const second =
      beside === undefined ? '' : `"${beside}" is the same and may have been paid already. `
    const question = await confirm(call, {
      message: `${second}Buy ${wanted.what} (${planId}) as "${name}" ${costing(cli, { baseUrl, priceSats })}`,
      about: [product, planId, name, priceSats, cli.url, beside ?? ''],
      refusal: 'Nothing was bought or paid.',
    })
    if (question !== null) return question
  }
  ctx.mcpReq.signal.throwIfAborted()
  return underWay(session, name, {
    what,
    done: () => pay(call, { maxSats: Math.min(cli.maxSats, priceSats), wanted, beside }),
  })
}

/** An unknown purchase of the same thing. Only the person can agree to another one beside it. */
function besideOf({ session, cli, ctx }: Asking, { product, planId, name }: Wanted) {
  const [unknown] = unknownBeside(cli, { product, planId, service: cli.url })
  if (unknown === undefined || (cli.walletUrl !== null && session.canAsk(ctx))) return unknown?.name
  throw new CliError(
    `${unknown.name} is the same as ${name} and may have been paid: nobody knows yet. Call check_order with the name ${unknown.name}. Nothing was paid now. The user can buy another one beside it with: mayfly buy ${product} --beside ${unknown.name}`,
    EXIT.notPaid,
  )
}

async function pay(
  call: Asking,
  { maxSats, wanted, beside }: { maxSats: number; wanted: Wanted; beside: string | undefined },
): Promise<PurchaseResult> {
  const { product, planId, name, seal } = wanted
  return paying(call, {
    ...{ name, maxSats },
    async work(cli, caller) {
      const goOn = `To continue, call the tool again with the name ${name}; nothing is paid twice.`
      const terms = { ...caller, goOn }
      if (openPurchase(cli, name) !== null && product === 'whisper') {
        return settled(call.session, name, (await resume(cli, name, terms)).saved)
      }
      const whisper = seal === undefined ? {} : { whisper: await seal() }
      const { saved } = await purchase(cli, { product, planId, name, beside, ...whisper }, terms)
      return settled(call.session, name, saved)
    },
  })
}

/** Collects what was paid, and pays nothing. */
export async function checkOrder(call: Asking, { name }: CheckInput): Promise<object> {
  const { session, cli } = call
  const before = session.buying.get(name)
  if (before !== undefined) return before.done
  const saved = findSaved(cli, name)
  if (saved !== null) return (await collectExtension(call, name)) ?? settled(session, name, saved)
  if (openPurchase(cli, name) === null) {
    throw new CliError(`Nothing was bought as ${name}, and nothing is being bought.`, EXIT.gone)
  }
  return orInvoice(name, async ({ onInvoice }) => {
    const goOn = `To continue, call check_order again with the name ${name}.`
    const { saved: bought } = await resume(cli, name, { onInvoice, goOn, isCollecting: true })
    return settled(session, name, bought)
  })
}
