/** What the tools that move money share: the ceilings, one payment for any number of calls, and its progress. */
import type { PaymentQuote } from '../../client/index.ts'
import type { PlanId } from '../../lib/product-names.ts'
import type { PurchaseResult } from '../../mcp-tools/purchases.ts'
import type { Cli } from '../cli.ts'
import { CliError, EXIT } from '../exit.ts'
import type { Caller } from '../purchase.ts'
import { budgetState, checkBudget, sats } from '../vault/budget.ts'
import type { Product } from '../vault/saved.ts'
import type { Asking } from './confirm.ts'
import { unpaid } from './results.ts'
import { cliOf, type Session } from './session.ts'

/** What is paid for, as the catalogue names it. @throws CliError if it is not on sale. */
export async function priceOf(
  cli: Cli,
  { baseUrl, product, planId }: { baseUrl: string; product: Product; planId: PlanId },
): Promise<number> {
  const { products, checkoutEnabled } = await cli.mayfly(baseUrl).catalog()
  const plan = products[product].plans.find((each) => each.planId === planId)
  if (plan === undefined || !plan.available || !checkoutEnabled) {
    throw new CliError(
      `The plan ${planId} of ${product} is not on sale now. Nothing was paid. The tool catalog shows what is.`,
    )
  }
  return plan.priceSats
}

/**
 * Before the person is asked, and before there is an invoice. The wallet is bound by both again when it pays.
 * @param isNew false for what was interrupted, which may have its part of the budget already.
 */
export function checkCeilings(
  cli: Cli,
  { priceSats, isNew }: { priceSats: number; isNew: boolean },
): void {
  if (priceSats > cli.maxSats) {
    throw new CliError(
      `The price of ${priceSats} sat is above the ceiling of ${cli.maxSats} sat, and nothing was paid. The user can raise MAYFLY_MAX_SATS where mayfly mcp is configured.`,
      EXIT.notPaid,
    )
  }
  if (isNew) checkBudget(cli, priceSats * 1000)
}

/** The end of a question to the person. */
export function costing(cli: Cli, { baseUrl, priceSats }: { baseUrl: string; priceSats: number }) {
  const leftMsat = cli.maxSatsPerDay * 1000 - budgetState(cli).spentMsat
  return `for ${priceSats} sat and network fees, from your wallet? Seller: ${baseUrl}. Left of today's budget: ${sats(leftMsat)} sat.`
}

/** Joins the calls for one name, so that a repeat waits for the payment under way. */
export function underWay(
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

/** The same work, if it is under way. @throws CliError if another one has the name. */
export function joined(
  { buying }: Session,
  name: string,
  what: string,
): Promise<PurchaseResult> | null {
  const before = buying.get(name)
  if (before === undefined) return null
  if (before.what === what) return before.done
  throw new CliError(
    `Another purchase named ${name} is under way. Choose another name. Nothing was paid for this one.`,
  )
}

/**
 * Runs what pays, with its progress told. A payment that has begun goes on when its call is cancelled: its money
 * may be gone already. Where no wallet pays, the invoice is the result.
 */
export async function paying(
  { session, cli, ctx, report }: Asking,
  { name, maxSats, work }: { name: string; maxSats: number; work: PayingWork },
): Promise<PurchaseResult> {
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
    return await orInvoice(name, (showing) =>
      work(cliOf(cli, { signal: stop.signal, maxSats }), {
        ...showing,
        onProgress: ({ stage, quote }) => {
          isPaying ||= stage === 'paying'
          report(STAGES[stage](quote))
        },
      }),
    )
  } finally {
    ctx.mcpReq.signal.removeEventListener('abort', onCancel)
    session.over.removeEventListener('abort', over)
  }
}

type PayingWork = (cli: Cli, caller: Caller) => Promise<PurchaseResult>

const STAGES = {
  invoice: ({ amountSats }: PaymentQuote) => `The invoice over ${amountSats} sat is checked`,
  paying: ({ amountSats }: PaymentQuote) => `Paying ${amountSats} sat from the wallet`,
  paid: () => 'Paid; collecting what was bought',
  uncertain: () => 'The wallet does not know yet whether it paid; waiting for the service',
}

/** Ends with the invoice where one has to be paid; what was written for the purchase stays. */
export async function orInvoice(
  name: string,
  work: (caller: Required<Pick<Caller, 'onInvoice'>>) => Promise<PurchaseResult>,
): Promise<PurchaseResult> {
  try {
    return await work({
      onInvoice: (quote) => {
        throw new Unpaid(quote)
      },
    })
  } catch (error) {
    if (error instanceof Unpaid) return unpaid(name, error.quote)
    throw error
  }
}

class Unpaid extends Error {
  readonly quote: PaymentQuote
  constructor(quote: PaymentQuote) {
    super('unpaid')
    this.quote = quote
  }
}
