/** Who pays at `mayfly mcp`: the wallet of this machine, with the same vault and budget as the command line. */
import { createHash } from 'node:crypto'
import {
  MayflyError,
  type PaymentQuote,
  type SavedCapability,
  sealWhisper,
} from '../../client/index.ts'
import { utf8 } from '../../lib/bytes.ts'
import type { PlanId, Product } from '../../lib/product-names.ts'
import { Refusal } from '../../tools/answers.ts'
import { applySettings } from '../../tools/monitor.ts'
import { type Pay, pick, type Quote, type Sale, text, type Wanted } from '../../tools/tool.ts'
import type { Cli } from '../cli.ts'
import { CliError, EXIT } from '../exit.ts'
import { type Done, heldAs as extendable, extendSaved, statusOf } from '../extension.ts'
import { type Caller, keepEnd, purchase, resume, type WhisperTerms } from '../purchase.ts'
import { budgetState, checkBudget, sats } from '../vault/budget.ts'
import { openPurchase, unknownBeside } from '../vault/purchases.ts'
import { checkName, findSaved } from '../vault/saved.ts'
import { switchOf } from '../whisper/send.ts'
import { heldAs } from './secrets.ts'
import { type Call, cliOf, confirm, type Session } from './session.ts'

export function payOf(call: Call, args: Record<string, unknown>): Pay {
  const name = text(args.name)
  return {
    async buy(wanted) {
      if (wanted.product === 'whisper') return send(call, wanted, args)
      const saved = findSaved(call.cli, name)
      if (saved === null) {
        const sale = await buy(call, { ...wanted, name })
        return setUp(call, wanted, { sale, args })
      }
      if (saved.capability.product === wanted.product && saved.planId === wanted.planId) {
        return setUp(call, wanted, { sale: soldAs(call.session, name, saved), args })
      }
      throw new Refusal(
        `Something else is saved as ${name}. Choose another name. Nothing was paid.`,
      )
    },
    extend: () => extend(call, name, text(args.expiresAt)),
    check: () => check(call, name),
  }
}

/** What is bought under a name. */
type Named = Wanted & {
  name: string
  /** Tells two purchases of one plan apart. */
  digest?: string
  /** Seals a whisper, for a new purchase. */
  seal?: () => Promise<WhisperTerms>
}

/** Sets a monitor up as it was asked for. It is bought and saved already, whatever comes of this. */
async function setUp(
  { cli }: Call,
  { settings = {} }: Wanted,
  { sale, args }: { sale: Sale; args: Record<string, unknown> },
): Promise<Sale> {
  if (Object.keys(settings).length === 0) return sale
  if (sale.state === 'unpaid') {
    return { ...sale, next: `${sale.next} To set it up as you asked, repeat this call instead.` }
  }
  if (sale.state !== 'bought') return sale
  try {
    await applySettings(heldAs(cli, sale.named.name ?? '', { pulse: 'owner' }), args)
    return sale
  } catch (error) {
    if (!(error instanceof Refusal || error instanceof MayflyError)) throw error
    const note = `It is bought, and not set up: ${error.message} Call configure_monitor. `
    return { ...sale, note }
  }
}

/** Buys, unless the same purchase is under way already. Asks the person first where money moves. */
async function buy(call: Call, wanted: Named): Promise<Sale> {
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
    await confirm(call, {
      message: `${second}Buy ${wanted.what} (${planId}) as "${name}" ${costing(cli, { baseUrl, priceSats })}`,
      about: [product, planId, name, priceSats, cli.url, beside ?? ''],
      refusal: 'Nothing was bought or paid.',
    })
  }
  ctx.mcpReq.signal.throwIfAborted()
  return underWay(session, name, {
    what,
    done: () => pay(call, { maxSats: Math.min(cli.maxSats, priceSats), wanted, beside }),
  })
}

/** An unknown purchase of the same thing. Only the person can agree to another one beside it. */
function besideOf({ session, cli, ctx }: Call, { product, planId, name }: Named) {
  const [unknown] = unknownBeside(cli, { product, planId, service: cli.url })
  if (unknown === undefined || (cli.walletUrl !== null && session.canAsk(ctx))) return unknown?.name
  throw new CliError(
    `${unknown.name} is the same as ${name} and may have been paid: nobody knows yet. Call check_order with the name ${unknown.name}. Nothing was paid now. The user can buy another one beside it with: mayfly buy ${product} --beside ${unknown.name}`,
    EXIT.notPaid,
  )
}

const pay = (
  call: Call,
  { maxSats, wanted, beside }: { maxSats: number; wanted: Named; beside: string | undefined },
): Promise<Sale> => {
  const { product, planId, name, seal } = wanted
  return paying(call, {
    ...{ name, maxSats },
    async work(cli, caller) {
      const goOn = `To continue, call the tool again with the name ${name}; nothing is paid twice.`
      const terms = { ...caller, goOn }
      if (openPurchase(cli, name) !== null && product === 'whisper') {
        return soldAs(call.session, name, (await resume(cli, name, terms)).saved)
      }
      const whisper = seal === undefined ? {} : { whisper: await seal() }
      const { saved } = await purchase(cli, { product, planId, name, beside, ...whisper }, terms)
      return soldAs(call.session, name, saved)
    },
  })
}

/** Encrypts a text and buys its reads. Sealing never makes the same bytes twice: only this process can tell a repeat. */
async function send(call: Call, wanted: Wanted, args: Record<string, unknown>): Promise<Sale> {
  const { session, cli } = call
  const name = text(args.name)
  const digest = createHash('sha256').update(JSON.stringify(args)).digest('base64')
  const saved = findSaved(cli, name)
  if (saved !== null) {
    if (session.sent.get(name) === digest) return soldAs(session, name, saved)
    throw new Refusal(
      `Something is saved as ${name} already, and nothing was sent or paid now. If the answer to an earlier call was lost, it was sent then: check_order shows it. For another text, choose another name.`,
    )
  }
  const isOpen = openPurchase(cli, checkName(name)) !== null
  if (isOpen && session.sent.get(name) !== digest) {
    throw new Refusal(
      `A text is being sent as ${name}, and this may be another one. Nothing was paid now. To go on with it, call check_order with this name; for another text, choose another name.`,
    )
  }
  const terms = await termsOf(cli, args)
  session.sent.set(name, digest)
  const seal = async () => ({
    sealed: await sealWhisper({ data: utf8(text(args.text)) }),
    ...terms,
  })
  return buy(call, { ...wanted, name, digest, seal })
}

async function termsOf(cli: Cli, args: Record<string, unknown>) {
  const { readLimit, revealAt, receipt, revealWhen } = args
  return {
    ...(readLimit === undefined ? {} : { readLimit: Number(readLimit) }),
    ...(revealAt === undefined ? {} : { revealAt: timeOf(text(revealAt)) }),
    ...(receipt ? ({ receipt: true } as const) : {}),
    ...(revealWhen === undefined ? {} : { revealWhen: await switchOf(cli, text(revealWhen)) }),
  }
}

function timeOf(given: string): Date {
  const hasOffset = /(?:Z|[+-]\d{2}:\d{2})$/.test(given)
  if (hasOffset && !Number.isNaN(Date.parse(given))) return new Date(given)
  throw new Refusal('revealAt must be a time with its offset, such as 2026-12-24T18:00:00Z.')
}

/** Collects what was paid, and pays nothing. */
async function check(call: Call, name: string): Promise<Sale> {
  const { session, cli } = call
  const before = session.buying.get(name)
  if (before !== undefined) return before.done
  const saved = findSaved(cli, name)
  if (saved !== null) return (await collectExtension(call, name)) ?? soldAs(session, name, saved)
  if (openPurchase(cli, name) === null) {
    throw new Refusal(`Nothing was bought as ${name}, and nothing is being bought.`)
  }
  return orInvoice(name, async ({ onInvoice }) => {
    const goOn = `To continue, call check_order again with the name ${name}.`
    const { saved: bought } = await resume(cli, name, { onInvoice, goOn, isCollecting: true })
    return soldAs(session, name, bought)
  })
}

/**
 * A purchase is repeatable by its name, but a name can be extended many times. So each call says which end it wants
 * moved, and moves it once.
 */
async function extend(call: Call, name: string, expiresAt: string): Promise<Sale> {
  const { session, cli, ctx } = call
  const end = Date.parse(expiresAt)
  const what = `extend ${end}`
  const before = joined(session, name, what)
  if (before !== null) return before
  // Says which names there are.
  heldAs(cli, name, { catch: 'owner', pulse: 'owner' })
  const held = extendable(cli, name)
  const begun = openPurchase(cli, name)
  const now = await statusOf(cli, held).catch((error: unknown) => {
    // An extension of what is gone may be paid already.
    if (begun !== null && error instanceof MayflyError && GONE.includes(error.phrase)) return null
    throw error
  })
  if (now !== null && Date.parse(now.expiresAt) > end) {
    return (
      (await collectExtension(call, name)) ??
      lasting(name, keepEnd(cli, name, now.expiresAt)?.capability.expiresAt ?? now.expiresAt)
    )
  }
  if (now !== null && Date.parse(now.expiresAt) < end) {
    throw new Refusal(
      `${name} ends at ${now.expiresAt}, and not at ${expiresAt}. Nothing was paid. To extend it, call this tool with expiresAt ${now.expiresAt}.`,
    )
  }
  const { capability, baseUrl } = held
  const { product } = capability
  const planId = begun?.planId ?? now?.planId ?? held.planId
  if (planId === undefined) throw new Refusal(`The plan of ${name} is not known. Nothing was paid.`)
  const priceSats = await priceOf(cli, { baseUrl, product, planId })
  if (cli.walletUrl !== null && begun?.preimage === undefined) {
    // An interrupted extension may have its part of the budget already.
    checkCeilings(cli, { priceSats, isNew: begun === null })
    const noun = product === 'catch' ? 'inbox' : 'monitor'
    await confirm(call, {
      message: `Extend the ${noun} "${name}" by its plan (${planId}) ${costing(cli, { baseUrl, priceSats })}`,
      about: ['extend', name, end, planId, priceSats, baseUrl],
      refusal: 'Nothing was extended or paid.',
    })
  }
  ctx.mcpReq.signal.throwIfAborted()
  return underWay(session, name, {
    what,
    done: () =>
      paying(call, {
        ...{ name, maxSats: Math.min(cli.maxSats, priceSats) },
        async work(payer, caller) {
          const goOn = `To continue, call extend again with the same name and expiresAt; nothing is paid twice.`
          const asked = { ...caller, goOn, endsAt: end }
          return extendedAs(session, name, await extendSaved(payer, name, asked))
        },
      }),
  })
}

const GONE: readonly string[] = ['not found', 'unauthorized']

/** Collects an extension that was begun and paid elsewhere, and pays nothing. Null: none is under way. */
async function collectExtension({ session, cli }: Call, name: string): Promise<Sale | null> {
  if (openPurchase(cli, name) === null) return null
  return orInvoice(name, async ({ onInvoice }) => {
    const goOn = `To continue, call check_order again with the name ${name}.`
    const caller = { onInvoice, goOn, isCollecting: true }
    return extendedAs(session, name, await extendSaved(cli, name, caller))
  })
}

function extendedAs(session: Session, name: string, done: Done): Sale {
  if ('expiresAt' in done) return lasting(name, done.expiresAt)
  const note = `${name} had ended before it was paid, so a new one was sold in its place. `
  return { ...soldAs(session, done.name, done.replacement), note } as Sale
}

const lasting = (name: string, expiresAt: string): Sale => ({
  ...{ named: { name }, state: 'extended', expiresAt },
})

/** What is saved under a name. The code of a whisper is there if the model knows what it opens. */
function soldAs(session: Session, name: string, { capability, baseUrl }: SavedCapability): Sale {
  const { product, publicId, expiresAt } = capability
  const isShown = session.showCodes || session.sent.has(name)
  const code = capability.product === 'whisper' && isShown ? capability.code : undefined
  return {
    ...{ named: { name }, state: 'bought', product, publicId, expiresAt, origin: baseUrl },
    secrets: code === undefined ? {} : { code },
  }
}

/** What is paid for, as the catalogue names it. @throws Refusal if it is not on sale. */
async function priceOf(
  cli: Cli,
  { baseUrl, product, planId }: { baseUrl: string; product: Product; planId: PlanId },
): Promise<number> {
  const { products, checkoutEnabled } = await cli.mayfly(baseUrl).catalog()
  const plan = products[product].plans.find((each) => each.planId === planId)
  if (plan?.available && checkoutEnabled) return plan.priceSats
  throw new Refusal(
    `The plan ${planId} of ${product} is not on sale now. Nothing was paid. The tool catalog shows what is.`,
  )
}

/**
 * Before the person is asked, and before there is an invoice. The wallet is bound by both again when it pays.
 * @param isNew false for what was interrupted, which may have its part of the budget already.
 */
function checkCeilings(
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
function costing(cli: Cli, { baseUrl, priceSats }: { baseUrl: string; priceSats: number }) {
  const leftMsat = cli.maxSatsPerDay * 1000 - budgetState(cli).spentMsat
  return `for ${priceSats} sat and network fees, from your wallet? Seller: ${baseUrl}. Left of today's budget: ${sats(leftMsat)} sat.`
}

/** Joins the calls for one name, so that a repeat waits for the payment under way. */
function underWay(
  session: Session,
  name: string,
  { what, done }: { what: string; done(): Promise<Sale> },
): Promise<Sale> {
  const before = joined(session, name, what)
  if (before !== null) return before
  const running = done().finally(() => session.buying.delete(name))
  session.buying.set(name, { what, done: running })
  return running
}

/** The same work, if it is under way. @throws Refusal if another one has the name. */
function joined({ buying }: Session, name: string, what: string): Promise<Sale> | null {
  const before = buying.get(name)
  if (before === undefined) return null
  if (before.what === what) return before.done
  throw new Refusal(
    `Another purchase named ${name} is under way. Choose another name. Nothing was paid for this one.`,
  )
}

/**
 * Runs what pays, with its progress told. A payment that has begun goes on when its call is cancelled: its money
 * may be gone already. Where no wallet pays, the invoice is the result.
 */
async function paying(
  { session, cli, ctx, report }: Call,
  {
    name,
    maxSats,
    work,
  }: { name: string; maxSats: number; work: (cli: Cli, caller: Caller) => Promise<Sale> },
): Promise<Sale> {
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

const STAGES = {
  invoice: ({ amountSats }: PaymentQuote) => `The invoice over ${amountSats} sat is checked`,
  paying: ({ amountSats }: PaymentQuote) => `Paying ${amountSats} sat from the wallet`,
  paid: () => 'Paid; collecting what was bought',
  uncertain: () => 'The wallet does not know yet whether it paid; waiting for the service',
}

/** Ends with the invoice where one has to be paid; what was written for the purchase stays. */
async function orInvoice(
  name: string,
  work: (caller: Required<Pick<Caller, 'onInvoice'>>) => Promise<Sale>,
): Promise<Sale> {
  try {
    return await work({
      onInvoice: (quote) => {
        throw new Unpaid(quote)
      },
    })
  } catch (error) {
    if (!(error instanceof Unpaid)) throw error
    return {
      ...{ named: { name }, state: 'unpaid' },
      quote: pick(error.quote, QUOTE_MEMBERS) as Quote,
      next: `Show the invoice to the user, who pays it once from any Lightning wallet. Then call check_order with the name ${name}.`,
    }
  }
}

const QUOTE_MEMBERS = [
  ...(['orderId', 'product', 'planId', 'amountSats'] as const),
  ...(['bolt11', 'paymentHash', 'expiresAt', 'network'] as const),
] satisfies (keyof Quote)[]

class Unpaid extends Error {
  readonly quote: PaymentQuote
  constructor(quote: PaymentQuote) {
    super('unpaid')
    this.quote = quote
  }
}
