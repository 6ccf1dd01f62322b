/** Buying: writes the draft, then orders and pays, then saves the capability. */
import {
  type AnyCapability,
  type Mayfly,
  MayflyError,
  type PaymentQuote,
  type PurchaseProgress,
  type SavedCapability,
  type SealedWhisper,
} from '../client/index.ts'
import type { Wallet } from '../client/wallet.ts'
import type { Cli } from './cli.ts'
import { type Draft, dropDraft, keepProof, type OpenDraft, sealedIn } from './drafts.ts'
import { CliError, EXIT, endingOf } from './exit.ts'
import { showInvoice, showWaiting, withWallet } from './invoice.ts'
import { fileOf, findSaved, save } from './saved.ts'

/** What a caller does otherwise than a terminal. */
export type Caller = {
  /** Told of each step. */
  onProgress?: (progress: PurchaseProgress) => void
  /** Takes the invoice where no wallet pays. If it throws, the purchase ends and its draft stays. */
  onInvoice?: (quote: PaymentQuote) => void
  /** The sentence that says how to continue. */
  goOn?: string
}

/** Makes or continues the purchase of a draft, and resolves to the saved capability. */
export async function purchase(
  cli: Cli,
  open: OpenDraft,
  caller: Caller = {},
): Promise<SavedCapability> {
  const { name, draft, isTakenUp, lock } = open
  const goOn = caller.goOn ?? `To continue: mayfly buy ${draft.product} --resume ${name}`
  /** The last stage of the payment in this run. */
  let stage: Stage | null = null
  const onStage = (progress: PurchaseProgress): void => {
    stage = progress.stage
    if (progress.preimage !== undefined) keepProof(cli, name, progress.preimage)
    caller.onProgress?.(progress)
  }
  try {
    if (isTakenUp) cli.note(`Continuing the purchase ${name}, which was interrupted.`)
    const before = findSaved(cli, name)
    const saved = before ?? (await buyAndSave(cli, open, { ...caller, onProgress: onStage }))
    dropDraft(cli, name)
    return saved
  } catch (error) {
    if (cli.signal.aborted) {
      cli.warn(`Interrupted. ${goOn}`)
      throw error
    }
    if (error instanceof MayflyError) {
      // Only the key collects the payment, so the draft stays, whatever the service answers.
      if (stage === 'paid' && error.status >= 400) throw paidAndRefused(name, error)
      if (error.phrase === 'already delivered') throw usedBefore(name)
    }
    if (canBeForgotten(error, { draft, isBegun: isTakenUp || stage !== null })) {
      dropDraft(cli, name)
      throw error
    }
    const ending = endingOf(error, draft.baseUrl)
    if (ending === null) throw error
    throw new CliError(`${ending.sentence} ${goOn}`, ending.code, { cause: error })
  } finally {
    lock.release()
  }
}

type Stage = PurchaseProgress['stage']

/** With its own `onProgress`, which is told first. */
type Watched = Caller & { onProgress: (progress: PurchaseProgress) => void }

/** Whether the draft of a failed purchase can be deleted: it holds neither money nor other data. */
function canBeForgotten(
  error: unknown,
  { draft, isBegun }: { draft: Draft; isBegun: boolean },
): boolean {
  // A wrong setting or option: no request was sent.
  if (error instanceof CliError) return error.code === EXIT.usage && !isBegun
  if (!(error instanceof MayflyError)) return false
  // The node reported the invoice as dead, or the order was refunded.
  if (error.phrase === 'order expired' || error.phrase === 'order refunded') return true
  // The quote of an earlier run may have been shown, and may be paid.
  if (isBegun) return false
  const isRefused = error.phrase === 'price above the ceiling' || error.status === 400
  // The draft may have the only copy of a whisper's bytes, if they came through a pipe.
  return isRefused || draft.whisper === undefined
}

function usedBefore(name: string): CliError {
  return new CliError(
    `${name} was collected elsewhere before it was saved here. To give it up: mayfly forget ${name}`,
    EXIT.gone,
  )
}

function paidAndRefused(name: string, { phrase, status }: MayflyError): CliError {
  const code = phrase === 'already delivered' ? EXIT.gone : EXIT.failed
  return new CliError(
    `${name} is paid, and the service says: ${phrase} (HTTP ${status}). Its key is kept: \`mayfly list\` shows how to continue.`,
    code,
  )
}

async function buyAndSave(
  cli: Cli,
  { name, draft }: OpenDraft,
  caller: Watched,
): Promise<SavedCapability> {
  const capability = await withWallet(cli, (wallet) => buy(cli, draft, { wallet, ...caller }))
  const saved = { capability, baseUrl: draft.baseUrl, planId: draft.planId }
  save(cli, name, saved)
  return saved
}

async function buy(
  cli: Cli,
  draft: Draft,
  { wallet, ...caller }: Watched & { wallet: Wallet | null },
): Promise<AnyCapability> {
  const mayfly = cli.mayfly(draft.baseUrl)
  const { planId, idempotencyKey, preimage } = draft
  const terms = {
    ...{ planId, idempotencyKey, signal: cli.signal },
    ...(preimage === undefined ? {} : { preimage }),
  }
  const { terms: payer, end } = payerOf(cli, { mayfly, wallet, sold: draft, ...caller })
  try {
    if (draft.product === 'catch') return await mayfly.buyCatch({ ...terms, ...payer })
    if (draft.product === 'pulse') return await mayfly.buyPulse({ ...terms, ...payer })
    return await mayfly.buyWhisper({ ...terms, ...payer, ...whisperTerms(draft) })
  } finally {
    end()
  }
}

/** How a purchase is paid: from the wallet, or by an invoice that is shown. `end` ends what is shown. */
export function payerOf(
  cli: Cli,
  {
    mayfly,
    wallet,
    sold,
    onInvoice,
    ...caller
  }: Watched & {
    mayfly: Mayfly
    wallet: Wallet | null
    sold: Pick<Draft, 'product' | 'planId'>
  },
): { terms: Payer; end(): void } {
  let waiting: { stop(): void } | undefined
  const onProgress = (progress: PurchaseProgress): void => {
    caller.onProgress(progress)
    noteProgress(cli, progress)
  }
  const terms: Payer = wallet
    ? { wallet, onProgress, onInvoice: (quote) => checkPrice(mayfly, sold, quote) }
    : {
        onProgress,
        onInvoice: (quote) => {
          if (onInvoice) return onInvoice(quote)
          showInvoice(cli, quote)
          waiting = showWaiting(cli)
        },
      }
  return { terms, end: () => waiting?.stop() }
}

type Payer = {
  onProgress: (progress: PurchaseProgress) => void
  onInvoice: (quote: PaymentQuote) => void | Promise<void>
} & ({ wallet: Wallet } | object)

/** Nobody looks at an invoice that a wallet pays, so the price must be the one on sale. @throws CliError */
async function checkPrice(
  mayfly: Mayfly,
  { product, planId }: Pick<Draft, 'product' | 'planId'>,
  { amountSats }: PaymentQuote,
): Promise<void> {
  const { products } = await mayfly.catalog()
  const plan = products[product].plans.find((each) => each.planId === planId)
  if (plan !== undefined && amountSats <= plan.priceSats) return
  const price = plan === undefined ? 'does not have that plan' : `says ${plan.priceSats}`
  throw new CliError(
    `The service asks for ${amountSats} sat, and its catalogue ${price}. Nothing was paid.`,
    EXIT.notPaid,
  )
}

function noteProgress(cli: Cli, { stage, quote }: PurchaseProgress): void {
  if (stage === 'paying') cli.note(`Paying ${quote.amountSats} sat from the wallet…`)
  if (stage === 'uncertain') {
    cli.note('The wallet does not know yet whether it paid. Waiting for the service to confirm.')
  }
}

function whisperTerms(draft: Draft): {
  sealed: SealedWhisper
  readLimit?: number
  revealAt?: Date
  receipt?: true
  revealWhen?: string
} {
  const sealed = sealedIn(draft)
  if (sealed === null) {
    throw new CliError(
      'The saved purchase is damaged. Restore its file. `mayfly forget` gives it up, with anything that was paid for it.',
    )
  }
  const { readLimit, revealAt, receipt, revealWhen } = draft.whisper ?? {}
  return {
    sealed,
    ...(readLimit === undefined ? {} : { readLimit }),
    ...(revealAt === undefined ? {} : { revealAt: new Date(revealAt) }),
    ...(receipt ? { receipt } : {}),
    ...(revealWhen === undefined ? {} : { revealWhen }),
  }
}

/**
 * Collects the paid order of a draft, and pays nothing. If the order was never requested, this
 * creates an invoice, which is not shown and expires.
 * @throws MayflyError `price above the ceiling` if the order is unpaid, and the service's refusals.
 */
export async function collectPaid(cli: Cli, draft: Draft): Promise<AnyCapability> {
  const mayfly = cli.mayfly(draft.baseUrl)
  const { planId, idempotencyKey, preimage } = draft
  const terms = {
    ...{ planId, idempotencyKey, signal: cli.signal },
    ...(preimage === undefined ? {} : { preimage }),
    maxSats: 0,
    onInvoice: () => undefined,
  }
  if (draft.product === 'catch') return mayfly.buyCatch(terms)
  if (draft.product === 'pulse') return mayfly.buyPulse(terms)
  return mayfly.buyWhisper({ ...terms, ...whisperTerms(draft) })
}

/** The place of a saved capability, as text. */
export const savedAs = (cli: Cli, name: string): string =>
  `Saved as ${name}, in ${fileOf(cli, name)}\n`
