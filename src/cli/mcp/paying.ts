/** Who pays at `mayfly mcp`: the wallet of this machine, with the same vault and budget as the command line. */
import { createHash } from 'node:crypto'
import { type PaymentQuote, type SavedCapability, sealWhisper } from '../../client/index.ts'
import { priceIn } from '../../client/offer.ts'
import { utf8 } from '../../lib/bytes.ts'
import type { PlanId, Product } from '../../lib/product-names.ts'
import { Refusal } from '../../tools/answers.ts'
import { NOUNS, type Pay, quoteIn, type Sale, text, type Wanted } from '../../tools/tool.ts'
import type { Cli } from '../cli.ts'
import { CliError, EXIT } from '../exit.ts'
import { type Done, extendSaved, statusOf } from '../extension.ts'
import { type Caller, keepEnd, purchase, refuseSecond, resume } from '../purchase.ts'
import { isGone } from '../status.ts'
import { budgetState, checkBudget, sats } from '../vault/budget.ts'
import { openPurchase } from '../vault/purchases.ts'
import { A, checkName, findSaved, loadExtendable } from '../vault/saved.ts'
import { termsOf } from '../whisper/send.ts'
import { heldAs, savedNames } from './secrets.ts'
import { type Call, cliOf, confirm, type Session } from './session.ts'

export function payOf(call: Call): Pay {
  const name = text(call.args.name)
  // Of several calls for one name, each finds what the one before has bought.
  const inTurn = (work: () => Promise<Sale>) => call.session.inTurn(name, work)
  return {
    buy: (wanted) => inTurn(() => buy(call, name, wanted)),
    extend: () => inTurn(() => extend(call, name, text(call.args.expiresAt))),
    check: () => inTurn(() => check(call, name)),
  }
}

/** Buys, or goes on with the purchase of this name. Asks the person first where money moves. */
async function buy(call: Call, name: string, { product, planId, settings }: Wanted): Promise<Sale> {
  const { session, cli, args } = call
  const isWhisper = product === 'whisper'
  // Sealing never makes the same bytes twice: only this process can tell a repeat from another text.
  const digest = createHash('sha256').update(JSON.stringify(args)).digest('base64')
  const isSame = session.sent.get(name) === digest
  const found = findSaved(cli, name)
  const record = openPurchase(cli, checkName(name))
  const before = settings && { note: SET_BEFORE }
  const isOther = found && (found.capability.product !== product || found.planId !== planId)
  if (isOther || (isWhisper && !isSame && (found ?? record) !== null)) {
    throw new Refusal(
      `Something else is saved or under way as ${name}, and nothing was sent or paid now. If the answer to an earlier call was lost, check_order has it. Else choose another name.`,
    )
  }
  if (found !== null) return { ...soldAs(session, name, found), ...before }
  const terms = isWhisper ? await termsOf(cli, args, 'revealAt') : {}
  if (record === null) refuseSecond(cli, { product, planId })
  const offer = {
    name,
    baseUrl: cli.url,
    product,
    planId,
    record,
    question: `Buy ${A[product]} (${planId}) as "${name}"`,
  }
  return paying(call, offer, async (payer, caller) => {
    if (isWhisper) session.sent.set(name, digest)
    if (isWhisper && record !== null) {
      return soldAs(session, name, (await resume(payer, name, caller)).saved)
    }
    const whisper = isWhisper
      ? { whisper: { sealed: await sealWhisper({ data: utf8(text(args.text)) }), ...terms } }
      : {}
    const set = settings && { settings }
    const bought = await purchase(payer, { product, planId, name, ...whisper, ...set }, caller)
    return { ...soldAs(session, name, bought.saved), ...(record && before) }
  })
}

const SET_BEFORE =
  'It has the settings of the first call with this name: configure_monitor changes them. '

/** Collects what was paid elsewhere, or says what is saved. Pays nothing. */
async function check(call: Call, name: string): Promise<Sale> {
  const collected = await collect(call, name)
  if (collected !== null) return collected
  const found = findSaved(call.cli, name)
  if (found !== null) return soldAs(call.session, name, found)
  throw new Refusal(
    `Nothing was bought as ${name}, and nothing is being bought. ${savedNames(call.cli)}`,
  )
}

/** Collects what was begun and paid elsewhere, of what is saved an extension. Null: nothing is under way. */
async function collect({ session, cli }: Call, name: string): Promise<Sale | null> {
  const record = openPurchase(cli, name)
  if (record === null) return null
  const howToContinue =
    record.state === 'failed'
      ? `To try again, repeat the call that buys or extends ${name}.`
      : `To continue, call check_order again with the name ${name}.`
  return orInvoice(name, async (onInvoice) => {
    const caller = { onInvoice, howToContinue, isCollecting: true }
    return findSaved(cli, name) === null
      ? soldAs(session, name, (await resume(cli, name, caller)).saved)
      : extendedAs(session, name, await extendSaved(cli, name, caller))
  })
}

/**
 * A purchase is repeatable by its name, but a name can be extended many times. So each call says which end it wants
 * moved, and moves it once.
 */
async function extend(call: Call, name: string, expiresAt: string): Promise<Sale> {
  const { session, cli } = call
  const end = Date.parse(expiresAt)
  // Says which names there are.
  heldAs(cli, name, { catch: 'owner', pulse: 'owner' })
  const held = loadExtendable(cli, name)
  const record = openPurchase(cli, name)
  const now = await statusOf(cli, held).catch((error: unknown) => {
    // An extension of what is gone may be paid already.
    if (record !== null && isGone(error)) return null
    throw error
  })
  if (now !== null && Date.parse(now.expiresAt) > end) {
    return (
      (await collect(call, name)) ??
      lasting(name, keepEnd(cli, name, now.expiresAt)?.capability.expiresAt ?? now.expiresAt)
    )
  }
  if (now !== null && Date.parse(now.expiresAt) < end) {
    throw new Refusal(
      `${name} ends at ${now.expiresAt}, and not at ${expiresAt}. Nothing was paid. To extend it, call this tool with expiresAt ${now.expiresAt}.`,
    )
  }
  const { product } = held.capability
  const planId = record?.planId ?? now?.planId ?? held.planId
  if (planId === undefined) throw new Refusal(`The plan of ${name} is not known. Nothing was paid.`)
  const offer = {
    name,
    baseUrl: held.baseUrl,
    product,
    planId,
    record,
    question: `Extend the ${NOUNS[product]} "${name}", which ends at ${new Date(end).toISOString()}, by its plan (${planId})`,
  }
  return paying(call, offer, async (payer, caller) =>
    extendedAs(session, name, await extendSaved(payer, name, { ...caller, endsAt: end, planId })),
  )
}

function extendedAs(session: Session, name: string, done: Done): Sale {
  if ('expiresAt' in done) return lasting(name, done.expiresAt)
  const note = `${name} had ended before it was paid, so a new one was sold in its place. `
  return { ...soldAs(session, done.name, done.replacement), note }
}

const lasting = (name: string, expiresAt: string): Sale => ({
  named: { name },
  state: 'extended',
  expiresAt,
})

/** What is saved under a name. The code of a whisper is there if the model knows what it opens. */
function soldAs(session: Session, name: string, { capability, baseUrl }: SavedCapability): Sale {
  const { product, publicId, expiresAt } = capability
  const isShown = session.showCodes || session.sent.has(name)
  const code = capability.product === 'whisper' && isShown ? capability.code : undefined
  return {
    named: { name },
    state: 'bought',
    product,
    publicId,
    expiresAt,
    origin: baseUrl,
    secrets: code === undefined ? {} : { code },
  }
}

/** What the person is asked to pay for. */
type Offer = {
  name: string
  baseUrl: string
  product: Product
  planId: PlanId
  /** What was interrupted, which may be paid, or have its part of the budget already. */
  record: ReturnType<typeof openPurchase>
  /** For the person. */
  question: string
}

/**
 * Holds the price against the ceilings, and asks the person, before there is an invoice. The wallet is bound by both
 * ceilings again when it pays.
 * @returns the most that may be paid. @throws Refusal if it is not on sale.
 */
async function agreed(
  call: Call,
  { baseUrl, product, planId, record, question }: Offer,
): Promise<number> {
  const { cli } = call
  const catalog = await cli.mayfly(baseUrl).catalog()
  const plan = catalog.products[product].plans.find((each) => each.planId === planId)
  const priceSats = priceIn(catalog, product, planId)
  if (!plan?.available || !catalog.checkoutEnabled || priceSats === null) {
    throw new Refusal(
      `The plan ${planId} of ${product} is not on sale now. Nothing was paid. The tool catalog shows what is.`,
    )
  }
  if (cli.walletUrl !== null && record?.preimage === undefined) {
    if (priceSats > cli.maxSats) {
      throw new CliError(
        `The price of ${priceSats} sat is above the ceiling of ${cli.maxSats} sat, and nothing was paid. The user can raise MAYFLY_MAX_SATS where mayfly mcp is configured.`,
        EXIT.notPaid,
      )
    }
    if (record === null) checkBudget(cli, priceSats * 1000)
    const leftMsat = cli.maxSatsPerDay * 1000 - budgetState(cli).spentMsat
    await confirm(call, {
      message: `${question} for ${priceSats} sat and network fees, from your wallet? Seller: ${baseUrl}. Left of today's budget: ${sats(leftMsat)} sat.`,
      about: [question, priceSats, baseUrl],
      refusal: 'Nothing was paid.',
    })
  }
  call.ctx.mcpReq.signal.throwIfAborted()
  return Math.min(cli.maxSats, priceSats)
}

/**
 * Runs what pays, once the person has agreed, with its progress told. A payment that has begun goes on when its call is
 * cancelled: its money may be gone already. Where no wallet pays, the invoice is the result.
 */
async function paying(
  call: Call,
  offer: Offer,
  work: (cli: Cli, caller: Caller) => Promise<Sale>,
): Promise<Sale> {
  const { session, cli, ctx, progress } = call
  const { name } = offer
  const maxSats = await agreed(call, offer)
  const stop = new AbortController()
  let isPaying = false
  ctx.mcpReq.signal.addEventListener('abort', () => {
    if (!isPaying) return stop.abort()
    cli.warn(`The call was cancelled while ${name} was being paid. It goes on, and is saved here.`)
  })
  const onProgress: Caller['onProgress'] = ({ stage, quote }) => {
    isPaying ||= stage === 'paying'
    void progress(STAGES[stage](quote))
  }
  try {
    const signal = AbortSignal.any([stop.signal, session.over])
    const payer = cliOf(cli, { signal, maxSats })
    return await orInvoice(name, (onInvoice) =>
      work(payer, { onInvoice, onProgress, howToContinue: REPEAT }),
    )
  } finally {
    isPaying = false
  }
}

const REPEAT = 'To continue, repeat the same call: nothing is paid twice.'

const STAGES = {
  invoice: ({ amountSats }: PaymentQuote) => `The invoice over ${amountSats} sat is checked`,
  paying: ({ amountSats }: PaymentQuote) => `Paying ${amountSats} sat from the wallet`,
  paid: () => 'Paid; collecting what was bought',
  uncertain: () => 'The wallet does not know yet whether it paid; waiting for the service',
}

/** Ends with the invoice where one has to be paid; what was written for the purchase stays. */
async function orInvoice(
  name: string,
  work: (onInvoice: (quote: PaymentQuote) => never) => Promise<Sale>,
): Promise<Sale> {
  let shown: PaymentQuote | undefined
  try {
    return await work((quote) => {
      shown = quote
      throw new Refusal('unpaid')
    })
  } catch (error) {
    if (shown === undefined) throw error
    return {
      named: { name },
      state: 'unpaid',
      quote: quoteIn(shown),
      note: `Show the invoice to the user, who pays it once from any Lightning wallet. Then call check_order with the name ${name}.`,
    }
  }
}
