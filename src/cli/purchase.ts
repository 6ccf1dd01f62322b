/**
 * Buying and extending, for commands and for the tools of hosts: the SDK's purchase with the vault as its store. A
 * purchase is in the vault before money moves, and what was bought is saved before the purchase goes.
 */

import { newEndOf } from '../client/extension.ts'
import {
  type AnyCapability,
  type Mayfly,
  MayflyError,
  type PaymentQuote,
  type PulseTerms,
  type PurchaseProgress,
  type PurchaseRecord,
  type SavedCapability,
  type WhisperTerms as SdkWhisperTerms,
  type SealedWhisper,
} from '../client/index.ts'
import { LATE_MS } from '../client/payments.ts'
import type { Wallet } from '../client/wallet.ts'
import { sharedWhisper } from '../client/whisper.ts'
import type { PlanId } from '../lib/product-names.ts'
import type { Cli } from './cli.ts'
import { CliError, EXIT, endingOf, misuse, notThere } from './exit.ts'
import { showInvoice, withWallet } from './invoice.ts'
import {
  continuing,
  dropPurchase,
  findPurchase,
  isUnknown,
  leavePurchase,
  nameSaved,
  nameTaken,
  type OpenPurchase,
  openPurchase,
  openPurchases,
  vaultStore,
} from './vault/purchases.ts'
import {
  findKept,
  findSaved,
  isSaved,
  type Product,
  type SavedExtendable,
  save,
  saveAgain,
} from './vault/saved.ts'
import { type Place, VaultError, vaultFile } from './vault/vault.ts'

/** What is sent, sealed here, and how it can be read. */
export type WhisperTerms = Extract<SdkWhisperTerms, { sealed: SealedWhisper }>

/** What is bought, under a name or the first free one. */
export type Wanted = {
  product: Product
  planId: PlanId
  name?: string | undefined
  whisper?: WhisperTerms
  /** What a monitor is set to. */
  settings?: PulseTerms['settings']
  /** The name of an unknown purchase of the same, beside which another one is wanted. */
  beside?: string | undefined
}

/** How a caller differs from a command on a terminal. */
export type Caller = {
  /** Told of each step. */
  onProgress?: (progress: PurchaseProgress) => void
  /** Takes the invoice where no wallet pays. If it throws, the purchase ends and its record stays. */
  onInvoice?: (quote: PaymentQuote) => void
  /** The sentence that says how to continue. */
  howToContinue?: string
  /** Pays nothing and waits for nothing: only what is paid already is collected. */
  isCollecting?: boolean
}

export type Bought = { name: string; saved: SavedCapability }

/** Buys, or goes on with the purchase of this name, or of the same thing. @throws CliError */
export function purchase(cli: Cli, wanted: Wanted, caller: Caller = {}): Promise<Bought> {
  const { product, planId, name } = wanted
  // Two whispers differ by their names alone.
  const isNew = product === 'whisper' || wanted.beside !== undefined
  const open =
    name !== undefined ? findPurchase(cli, name) : isNew ? null : abandoned(cli, wanted)[0]
  if (open) {
    if (!isSame(cli, wanted)(open)) throw nameTaken(open.name)
    if (product === 'whisper') {
      throw new CliError(
        `A whisper is already being bought as ${open.name}. To continue it: mayfly whisper send --resume ${open.name}`,
      )
    }
    return goOn(cli, open, caller)
  }
  if (name !== undefined && findKept(cli, name) !== null) throw nameSaved(name)
  refuseSecond(cli, wanted)
  return run(cli, { name, product, service: cli.url, caller }, (mayfly, terms) => {
    const ask = { ...terms, planId, idempotencyKey: crypto.randomUUID() }
    if (product === 'catch') return mayfly.buyCatch(ask)
    if (product === 'pulse') {
      const { settings } = wanted
      return mayfly.buyPulse({ ...ask, ...(settings && { settings }) })
    }
    if (wanted.whisper === undefined) throw misuse('There is nothing to send.')
    return mayfly.buyWhisper({ ...ask, ...wanted.whisper })
  })
}

/** Goes on with the purchase of this name. @throws CliError if there is none. */
export function resume(cli: Cli, name: string, caller: Caller = {}): Promise<Bought> {
  const open = findPurchase(cli, name)
  if (open !== null) return goOn(cli, open, caller)
  const says = isSaved(cli, name)
    ? `${name} is bought and saved: \`mayfly show ${name}\` shows it.`
    : `There is no unfinished purchase named ${name}. \`mayfly list\` shows them.`
  throw notThere(says)
}

function goOn(cli: Cli, open: OpenPurchase, caller: Caller): Promise<Bought> {
  const { name, record } = open
  refuseHeld(open)
  const what = record.extends === undefined ? 'purchase' : 'extension of'
  cli.note(`Continuing the ${what} ${name}, which was interrupted.`)
  const { product, service } = record
  if (product === null || service === null) throw nameTaken(name)
  return run(cli, { name, product, service, caller }, (mayfly, terms) =>
    mayfly.resume(record.idempotencyKey, terms),
  )
}

/** Extends what is saved under this name. What had ended before is sold anew, under a name of its own. */
export function extension(
  cli: Cli,
  name: string,
  { saved, planId, caller }: { saved: SavedExtendable; planId: PlanId; caller: Caller },
): Promise<Bought> {
  const { baseUrl: service, capability } = saved
  return run(cli, { name, product: capability.product, service, caller }, (mayfly, terms) =>
    mayfly.extend(capability, { ...terms, planId, idempotencyKey: crypto.randomUUID() }),
  )
}

/** A second purchase of the same thing, beside one whose payment is unknown, needs a word that names it. */
export function refuseSecond(cli: Cli, wanted: Wanted): void {
  const { beside } = wanted
  if (beside !== undefined) {
    const names = openPurchases(cli)
      .filter(isSame(cli, wanted))
      .map(({ name }) => name)
    if (!names.includes(beside)) {
      throw misuse(
        `No unfinished purchase of the same is named ${beside}. These are: ${names.join(', ') || 'none'}`,
      )
    }
  }
  const [unknown] = abandoned(cli, wanted).filter(
    ({ name, record }) => isUnknown(record) && name !== beside,
  )
  if (unknown === undefined) return
  throw new CliError(
    `${unknown.name} is the same, and may have been paid: nobody knows yet. To go on with it: ${continuing(unknown.name, unknown.record)}. To buy another one beside it: --beside ${unknown.name}`,
    EXIT.notPaid,
  )
}

/** @throws CliError while another process works on it. */
export function refuseHeld({ name, heldBy, record }: OpenPurchase): void {
  if (heldBy === null) return
  const does = record.extends === undefined ? 'buying' : 'extending'
  throw new CliError(`Process ${heldBy} is ${does} ${name}. Wait for it, or stop it first.`)
}

type Terms = {
  signal: AbortSignal
  maxSats: number
  wallet?: Wallet
  onProgress: (progress: PurchaseProgress) => void
  onInvoice: (quote: PaymentQuote) => void
}

/** Runs a purchase of the SDK on the vault, and says how it goes on if it does not end well. */
async function run(
  cli: Cli,
  {
    name: wanted,
    product,
    service,
    caller,
  }: { name: string | undefined; product: Product; service: string; caller: Caller },
  buy: (mayfly: Mayfly, terms: Terms) => Promise<unknown>,
): Promise<Bought> {
  let name = wanted ?? ''
  let saved: SavedCapability | null = null
  const store = vaultStore(cli, {
    nameFor(isTaken) {
      name = wanted ?? freeName(product, isTaken)
      return name
    },
    onDelivered(db, as, record) {
      name = as
      const kept = keepBought({ ...cli, db }, as, record)
      if (kept !== null) ({ name, saved } = kept)
    },
  })
  const onProgress = (progress: PurchaseProgress): void => {
    const { stage, quote } = progress
    caller.onProgress?.(progress)
    if (stage === 'paying') cli.note(`Paying ${quote.amountSats} sat from the wallet…`)
    if (stage !== 'uncertain') return
    if (caller.isCollecting) throw notPaidYet(cli, name)
    cli.note('The wallet does not know yet whether it paid. Waiting for the service to confirm.')
  }
  const onInvoice = (quote: PaymentQuote): void => {
    caller.onInvoice?.(quote)
    if (caller.onInvoice) return
    showInvoice(cli, quote)
    cli.note('Waiting for the payment…')
  }
  const { signal, maxSats } = cli
  const walletUrl = caller.isCollecting ? null : cli.walletUrl
  try {
    await withWallet({ ...cli, walletUrl, url: service }, (wallet) => {
      const paid = wallet ? { wallet, onInvoice: () => undefined } : { onInvoice }
      return buy(cli.mayfly(service, store), { signal, maxSats, onProgress, ...paid })
    })
  } catch (error) {
    throw endOf(cli, error, { name, service, caller })
  } finally {
    if (name !== '') leavePurchase(cli, name)
  }
  saved ??= findSaved(cli, name)
  if (saved !== null) return { name, saved }
  throw notThere(
    `${name} was collected elsewhere before it was saved here. To give it up: mayfly forget ${name}`,
  )
}

/** What its wallet said last stands, as long as the service has not heard of a payment. */
function notPaidYet(cli: Cli, name: string): MayflyError {
  const isFailed = openPurchase(cli, name)?.state === 'failed'
  return new MayflyError(isFailed ? 'payment failed' : 'payment outcome unknown', 0)
}

/** Saves what a purchase has brought. Null for an extension of what is forgotten here. */
export function keepBought(
  cli: Place & { url: string },
  name: string,
  record: Partial<PurchaseRecord>,
): Bought | null {
  const { resource, service, planId } = record
  const end = record.extends === undefined ? null : newEndOf(resource)
  if (end !== null) {
    const saved = keepEnd(cli, name, end.expiresAt)
    return saved && { name, saved }
  }
  const capability =
    record.whisper === undefined ? resource : sharedWhisper(resource, record.whisper)
  const saved = {
    capability: capability as AnyCapability,
    baseUrl: service ?? cli.url,
    ...(planId && { planId }),
  }
  const before = findSaved(cli, name)
  if (before?.capability.publicId === saved.capability.publicId) return { name, saved: before }
  const free =
    record.extends === undefined && findKept(cli, name) === null
      ? name
      : freeName(name.slice(0, 58), (some) => findKept(cli, some) !== null, 2)
  save(cli, free, saved)
  return { name: free, saved }
}

/** Saves a later end of what was extended. The end of an earlier extension may be repeated after a later one. */
export function keepEnd(place: Place, name: string, expiresAt: string): SavedCapability | null {
  return saveAgain<SavedCapability>(place, name, (saved) =>
    Date.parse(saved.capability.expiresAt) >= Date.parse(expiresAt)
      ? saved
      : { ...saved, capability: { ...saved.capability, expiresAt } },
  )
}

/** What a purchase that failed says: where its money is, and how it goes on. */
function endOf(
  cli: Cli,
  error: unknown,
  { name, service, caller }: { name: string; service: string; caller: Caller },
): unknown {
  const record = name === '' ? null : openPurchase(cli, name)
  if (record === null) return error
  const next = caller.howToContinue ?? `To continue: ${continuing(name, record)}`
  if (cli.signal.aborted) {
    cli.warn(`Interrupted. ${next}`)
    return error
  }
  const phrase = error instanceof MayflyError ? error.phrase : ''
  if (isOver(cli, record, phrase)) {
    dropPurchase(cli, name)
    return error
  }
  if (error instanceof MayflyError && error.status >= 400 && record.state !== 'quoted') {
    return new CliError(
      `${name} ${moneyIn(record)}, and the service says: ${phrase} (HTTP ${error.status}). Its key is kept: \`mayfly list\` shows how to continue.`,
      phrase === 'already delivered' ? EXIT.gone : EXIT.failed,
    )
  }
  if (phrase === 'second payment refused') {
    return new CliError(
      `The service offers another invoice for ${name}, which is never paid. Its own has the payment hash ${record.invoices.at(-1)?.paymentHash}: ask the wallet for it. ${next} To give it up and buy anew: mayfly forget ${name}`,
      EXIT.failed,
      { cause: error },
    )
  }
  const ending = endingOf(error, service)
  if (ending === null) return error
  // A vault that fails says nothing of the money.
  const state = error instanceof VaultError ? `${name} ${moneyIn(record)}. ` : ''
  return new CliError(`${state}${ending.sentence} ${next}`, ending.code, { cause: error })
}

/** Whether nothing can come of a purchase any more: no money is in it, and none can be. */
function isOver(cli: Cli, { state, invoices }: PurchaseRecord, phrase: string): boolean {
  // Somebody may have paid the invoice by hand, so the service decides, and not our clock.
  if (state === 'quoted') return phrase !== EXPIRED && OVER.includes(phrase)
  const end = Date.parse(invoices.at(-1)?.expiresAt ?? '')
  // Not by the word of the service alone.
  return state === 'failed' && OVER.includes(phrase) && cli.now() >= end + LATE_MS
}

const EXPIRED = 'invoice expired'
const OVER = ['order expired', 'order refunded', EXPIRED]

function moneyIn({ state }: PurchaseRecord): string {
  if (state === 'paying') return 'may be paid'
  return state === 'paid' ? 'is paid' : 'is not paid'
}

/** Whether a purchase is of the same thing. */
const isSame =
  ({ url }: Cli, { product, planId }: Wanted) =>
  ({ record }: OpenPurchase): boolean =>
    record.product === product &&
    record.planId === planId &&
    record.service === url &&
    record.extends === undefined

/** Purchases of the same thing that were interrupted, and that nobody works on now. */
const abandoned = (cli: Cli, wanted: Wanted): OpenPurchase[] =>
  openPurchases(cli)
    .filter(isSame(cli, wanted))
    .filter(({ heldBy, isMine }) => heldBy === null && !isMine)

export function freeName(begin: string, isTaken: (name: string) => boolean, from = 1): string {
  for (let number = from; ; number++) {
    const name = `${begin}-${number}`
    if (!isTaken(name)) return name
  }
}

/** The place of a saved capability, as text. */
export const savedAs = (cli: Cli, name: string): string =>
  `Saved as ${name}, in ${vaultFile(cli.folder)}\n`
