/** The tools that buy: the same drafts, files and budget as the command line. */
import type { InputRequiredResult } from '@modelcontextprotocol/server'
import type { PlanId } from '../../lib/product-names.ts'
import type { PurchaseResult } from '../../mcp-tools/purchases.ts'
import { type Draft, openDraft, readDraft, resumeDraft } from '../drafts.ts'
import { CliError, EXIT } from '../exit.ts'
import { purchase } from '../purchase.ts'
import { findSaved, type Product } from '../saved.ts'
import { type Asking, confirm } from './confirm.ts'
import { collectExtension } from './extending.ts'
import { checkCeilings, costing, joined, orInvoice, paying, priceOf, underWay } from './paying.ts'
import { settled } from './results.ts'

export type PlanInput = { planId: PlanId; name: string }
export type CheckInput = { name: string }

/** What is bought. `make` writes its draft, for a new purchase. */
export type Wanted = {
  product: Product
  planId: PlanId
  name: string
  /** The words for the question. */
  what: string
  /** Tells two purchases of one plan apart. */
  digest?: string
  make(): Draft
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
  const baseUrl = call.cli.url
  const make = (): Draft => ({
    version: 1,
    ...{ product, planId, baseUrl },
    idempotencyKey: crypto.randomUUID(),
  })
  const saved = findSaved(call.cli, name)
  if (saved === null) return buy(call, { product, planId, name, what, make })
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
  const { product, planId, name, make, digest = '' } = wanted
  const what = `${product} ${planId} ${digest}`
  const before = joined(session, name, what)
  if (before !== null) return before
  const baseUrl = cli.url
  const priceSats = await priceOf(cli, { baseUrl, product, planId })
  const mayPay = cli.walletUrl !== null && readDraft(cli, name)?.preimage === undefined
  if (mayPay) {
    // An interrupted purchase may have its part of the budget already.
    checkCeilings(cli, { priceSats, isNew: readDraft(cli, name) === null })
    const question = await confirm(call, {
      message: `Buy ${wanted.what} (${planId}) as "${name}" ${costing(cli, { baseUrl, priceSats })}`,
      about: [product, planId, name, priceSats, cli.url],
      refusal: 'Nothing was bought or paid.',
    })
    if (question !== null) return question
  }
  ctx.mcpReq.signal.throwIfAborted()
  return underWay(session, name, {
    what,
    done: () => pay(call, { maxSats: Math.min(cli.maxSats, priceSats), wanted, make }),
  })
}

async function pay(
  call: Asking,
  { maxSats, wanted, make }: { maxSats: number; wanted: Wanted; make: Wanted['make'] },
): Promise<PurchaseResult> {
  const { product, planId, name } = wanted
  const open = openDraft(call.cli, { product, planId, name }, make)
  return paying(call, {
    ...{ name, maxSats },
    async work(cli, caller) {
      const goOn = `To continue, call the tool again with the name ${name}; nothing is paid twice.`
      return settled(call.session, name, await purchase(cli, open, { ...caller, goOn }))
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
  const draft = readDraft(cli, name)
  if (draft === null) {
    throw new CliError(`Nothing was bought as ${name}, and nothing is being bought.`, EXIT.gone)
  }
  return orInvoice(name, async ({ onInvoice }) => {
    const goOn = `To continue, call check_order again with the name ${name}.`
    const open = resumeDraft(cli, name)
    const bought = await purchase({ ...cli, walletUrl: null }, open, { onInvoice, goOn })
    return settled(session, name, bought)
  })
}
