/** The tools that buy: the same drafts, files and budget as the command line. */
import type { InputRequiredResult } from '@modelcontextprotocol/server'
import type { PaymentQuote, SavedCapability } from '../../client/index.ts'
import type { PlanId } from '../../lib/product-names.ts'
import type { PurchaseResult } from '../../mcp-tools/purchases.ts'
import { budgetState, checkBudget, sats } from '../budget.ts'
import type { Cli } from '../cli.ts'
import { type Draft, openDraft, readDraft, resumeDraft } from '../drafts.ts'
import { CliError, EXIT } from '../exit.ts'
import { purchase } from '../purchase.ts'
import { findSaved, type Product } from '../saved.ts'
import { type Asking, confirm } from './confirm.ts'
import { cliOf, type Session } from './session.ts'

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
  const priceSats = await priceOf(cli, wanted)
  const mayPay = cli.walletUrl !== null && readDraft(cli, name)?.preimage === undefined
  if (mayPay) {
    checkCeilings(cli, wanted, priceSats)
    const question = await confirm(call, {
      message: questionOf(cli, wanted, priceSats),
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

/** Joins the calls for one name, so that a repeat waits for the payment under way. */
function underWay(
  session: Session,
  name: string,
  { what, done }: { what: string; done(): Promise<PurchaseResult> },
): Promise<PurchaseResult> {
  const before = joined(session, name, what)
  if (before !== null) return before
  const running = done().finally(() => session.buying.delete(name))
  session.buying.set(name, { what, done: running })
  return running
}

/** The same purchase, if it is under way. @throws CliError if another one has the name. */
function joined({ buying }: Session, name: string, what: string): Promise<PurchaseResult> | null {
  const before = buying.get(name)
  if (before === undefined) return null
  if (before.what === what) return before.done
  throw new CliError(
    `Another purchase named ${name} is under way. Choose another name. Nothing was paid for this one.`,
  )
}

async function pay(
  { session, cli, ctx, report }: Asking,
  { maxSats, wanted, make }: { maxSats: number; wanted: Wanted; make: Wanted['make'] },
): Promise<PurchaseResult> {
  const { product, planId, name } = wanted
  const open = openDraft(cli, { product, planId, name }, make)
  // A payment that has begun goes on when its call is cancelled: its money may be gone already.
  const stop = new AbortController()
  let isPaying = false
  const onCancel = (): void => {
    if (!isPaying) stop.abort()
    else
      cli.warn(
        `The call was cancelled while ${name} was being paid. It goes on, and is saved here.`,
      )
  }
  ctx.mcpReq.signal.addEventListener('abort', onCancel)
  const over = (): void => stop.abort()
  session.over.addEventListener('abort', over)
  try {
    const saved = await purchase(cliOf(cli, { signal: stop.signal, maxSats }), open, {
      onProgress: ({ stage, quote }) => {
        isPaying ||= stage === 'paying'
        report(STAGES[stage](quote))
      },
      onInvoice: (quote) => {
        throw new Unpaid(quote)
      },
      goOn: `To continue, call the tool again with the name ${name}; nothing is paid twice.`,
    })
    return settled(session, name, saved)
  } catch (error) {
    if (error instanceof Unpaid) return unpaid(name, error.quote)
    throw error
  } finally {
    ctx.mcpReq.signal.removeEventListener('abort', onCancel)
    session.over.removeEventListener('abort', over)
  }
}

const STAGES = {
  invoice: ({ amountSats }: PaymentQuote) => `The invoice over ${amountSats} sat is checked`,
  paying: ({ amountSats }: PaymentQuote) => `Paying ${amountSats} sat from the wallet`,
  paid: () => 'Paid; collecting what was bought',
  uncertain: () => 'The wallet does not know yet whether it paid; waiting for the service',
}

/** Where no wallet pays, the invoice ends the call, and the draft stays. */
class Unpaid extends Error {
  readonly quote: PaymentQuote
  constructor(quote: PaymentQuote) {
    super('unpaid')
    this.quote = quote
  }
}

/** Collects what was paid, and pays nothing. */
export async function checkOrder(call: Asking, { name }: CheckInput): Promise<object> {
  const { session, cli } = call
  const before = session.buying.get(name)
  if (before !== undefined) return before.done
  const saved = findSaved(cli, name)
  if (saved !== null) return settled(session, name, saved)
  const draft = readDraft(cli, name)
  if (draft === null) {
    throw new CliError(`Nothing was bought as ${name}, and nothing is being bought.`, EXIT.gone)
  }
  try {
    const bought = await purchase({ ...cli, walletUrl: null }, resumeDraft(cli, name), {
      onInvoice: (quote) => {
        throw new Unpaid(quote)
      },
      goOn: `To continue, call check_order again with the name ${name}.`,
    })
    return settled(session, name, bought)
  } catch (error) {
    if (error instanceof Unpaid) return unpaid(name, error.quote)
    throw error
  }
}

async function priceOf(cli: Cli, { product, planId }: Wanted): Promise<number> {
  const { products, checkoutEnabled } = await cli.mayfly().catalog()
  const plan = products[product].plans.find((each) => each.planId === planId)
  if (plan === undefined || !plan.available || !checkoutEnabled) {
    throw new CliError(
      `The plan ${planId} of ${product} is not on sale now. Nothing was paid. The tool catalog shows what is.`,
    )
  }
  return plan.priceSats
}

/** Before the person is asked, and before there is an invoice. The wallet is bound by both again when it pays. */
function checkCeilings(cli: Cli, { name }: Wanted, priceSats: number): void {
  if (priceSats > cli.maxSats) {
    throw new CliError(
      `The price of ${priceSats} sat is above the ceiling of ${cli.maxSats} sat, and nothing was paid. The user can raise MAYFLY_MAX_SATS where mayfly mcp is configured.`,
      EXIT.notPaid,
    )
  }
  // An interrupted purchase may have its part of the budget already.
  if (readDraft(cli, name) === null) {
    checkBudget(cli, { amountMsat: priceSats * 1000, maxFeeMsat: 0 })
  }
}

function questionOf(cli: Cli, { what, planId, name }: Wanted, priceSats: number): string {
  const leftMsat = cli.maxSatsPerDay * 1000 - budgetState(cli).spentMsat
  return `Buy ${what} (${planId}) as "${name}" for ${priceSats} sat and network fees, from your wallet? Seller: ${cli.url}. Left of today's budget: ${sats(leftMsat)} sat.`
}

export function settled(session: Session, name: string, saved: SavedCapability): PurchaseResult {
  const { capability, baseUrl } = saved
  const { product, publicId, expiresAt } = capability
  const url = product === 'catch' ? { url: `${baseUrl}/c/${publicId}` } : {}
  const code = 'code' in capability && session.showCodes ? { code: capability.code } : {}
  return {
    state: 'settled',
    name,
    bought: { product, publicId, expiresAt, ...url, ...code } as PurchaseResult['bought'] & object,
    next: NEXT[product](name, session.showCodes),
  }
}

const NEXT: Record<Product, (name: string, showCodes: boolean) => string> = {
  catch: (name) =>
    `It is saved as ${name}. Give the url to the sender, and call wait_for_webhook or read_inbox with this name.`,
  pulse: (name) => `It is saved as ${name}. Call ping with this name each time the job has run.`,
  whisper: (name, showCodes) =>
    showCodes
      ? `It is saved as ${name}. Whoever has the code can read it: hand it to the reader alone.`
      : `It is saved as ${name}. The user gets the code for the reader with: mayfly show ${name} --reveal`,
}

function unpaid(name: string, quote: PaymentQuote): PurchaseResult {
  const { orderId, product, planId, amountSats, bolt11, paymentHash, expiresAt, network } = quote
  return {
    state: 'payment required',
    name,
    quote: {
      ...{ orderId, product, planId, amountSats },
      ...{ bolt11, paymentHash, expiresAt, network },
    },
    next: `Show the invoice (bolt11) to the user, who pays it once from any Lightning wallet. Then call check_order with the name ${name}.`,
  }
}
