/**
 * Buying: one key, one order, one invoice, one payment, however often an answer is lost or a program is killed. Each
 * state (`PurchaseState`) is written to the store before the next step. From `paying` on, only this invoice is handed to
 * a wallet, and only to this one. Another invoice is possible when that wallet still says, ten minutes after the expiry,
 * that it did not pay.
 */

import { sha256 } from '../lib/sha256.ts'
import { decodeInvoice } from '../protocol/bolt11.ts'
import {
  handed,
  isJustHanded,
  isProof,
  type KnownPayment,
  lookUp,
  outcomeUnknown,
  payWith,
  walletOf,
} from './asked-wallet.ts'
import { MayflyError, type MayflyPhrase } from './errors.ts'
import { type ApiRequest, type ApiResponse, errorOf, type Http, retryAfterSeconds } from './http.ts'
import { checkQuote, isSameInvoice, priceIn, quoteOf } from './offer.ts'
import {
  dateOf,
  isFinal,
  isLost,
  pollOf,
  refuseOther,
  requestOf,
  resourceOf,
} from './order-requests.ts'
import type { PaymentQuote, Purchase, PurchaseFromWallet, PurchaseProgress } from './purchase.ts'
import {
  lastOf,
  memoryStore,
  newRecord,
  type Order,
  type PurchaseRecord,
  type PurchaseState,
  type PurchaseStore,
} from './record.ts'
import { wait } from './wait.ts'
import { type Wallet, WalletError, type WalletPayment } from './wallet.ts'

/** After its expiry, an invoice may be accepted for so long: a payment that is under way, and clocks that differ. */
export const LATE_MS = 10 * 60 * 1000
/** How long a paid order is asked for, from a service that does not hand it out or does not answer. */
const COLLECT_MS = 10 * 60 * 1000
/** The pause between two polls, if the service names none. */
const POLL_SECONDS = 1
/** What is said of an order that its service never ends. */
const LEFT: Record<PurchaseState, MayflyPhrase> = {
  quoted: 'invoice expired',
  failed: 'payment failed',
  paying: 'payment outcome unknown',
  paid: 'paid but not collected',
  delivered: 'paid but not collected',
}

export type Payments = ReturnType<typeof createPayments>

/** How a purchase goes on: with the wallet that began it, or by its invoice, which is shown again. */
export type Resumption = Omit<PurchaseFromWallet, 'planId' | 'idempotencyKey' | 'preimage'> & {
  /** The proof of a payment that was made elsewhere, 64 hex digits. It is kept with the record. */
  preimage?: string | undefined
}

export type PaymentsOptions = {
  maxSats: number
  /** The service's address, which the records name. */
  service?: string
  wallet?: Wallet | undefined
  /** Where purchases are kept. Without a store they are in memory alone. */
  store?: PurchaseStore | undefined
  now?: () => number
  /**
   * A wait for somebody's payment ends by its signal alone, and begins with the invoice also while the service is
   * away: the clock of a browser may be anything.
   */
  isEndless?: boolean
}

/** What one call has for a purchase. */
type Run = Resumption & {
  maxSats: number
  /** Requests the order. */
  ask?: () => Promise<ApiResponse>
  /** Another call has handed the invoice to the wallet, so this one does not. */
  isFollowing?: boolean
}

/** What the service said last of the order, and when that was by its clock. */
type Said = { refusal?: MayflyError; resource?: unknown; at: number | null; isSilent?: boolean }

export function createPayments(http: Http, options: PaymentsOptions) {
  const { store = memoryStore(), service = '', now = Date.now, isEndless = false } = options

  /** A request that is repeated if its answer is lost, which is safe, since its key names the order. */
  const request = (asked: ApiRequest) => http.request({ ...asked, isRepeatable: true })
  /** The same for an order that may be paid: nobody gives up on that soon. */
  const collecting = (asked: ApiRequest) => request({ ...asked, timeoutMs: COLLECT_MS })

  async function buy(order: Order, purchase: Purchase | PurchaseFromWallet): Promise<unknown> {
    const { idempotencyKey = crypto.randomUUID(), preimage, maxSats, ...rest } = purchase
    const wallet = purchase.wallet ?? options.wallet
    const { signal } = purchase
    const run: Run = {
      ...rest,
      wallet,
      preimage,
      maxSats: maxSats ?? options.maxSats,
      ask: () => request(requestOf(order, { idempotencyKey, preimage, signal })),
    }
    const fresh = await newRecord(order, { idempotencyKey, service, maxSats: run.maxSats })
    const known = await store.load(idempotencyKey)
    if (known === null) return begin(fresh, run)
    if (known.service !== service || known.requestSha256 !== fresh.requestSha256) {
      throw new MayflyError('idempotency key reused with a different request', 0)
    }
    return takeUp(known, run)
  }

  /** Requests the order, and writes its invoice before it is shown or paid. */
  async function begin(record: PurchaseRecord, run: Run): Promise<unknown> {
    if (!run.ask) throw new MayflyError('order not found', 0)
    const answer = await run.ask()
    if (answer.status === 200) return deliver(record, resourceOf(answer))
    if (answer.status !== 402) throw errorOf(answer)
    const quote = quoteOf(answer)
    if (run.preimage === undefined) check(record, quote, { run, at: dateOf(answer) })
    // Who has paid already is asked for nothing but that payment.
    else if (!(await isProof(run.preimage, quote.paymentHash))) {
      throw new MayflyError('second payment refused', 0)
    }
    if (record.invoices.some(({ bolt11 }) => isSameInvoice(bolt11, quote.bolt11))) {
      throw new MayflyError('payment failed', 0)
    }
    if (run.preimage === undefined) await checkPrice(record, quote, run)
    const quoted = await write(record, {
      state: 'quoted',
      maxSats: run.maxSats,
      invoices: [...record.invoices, quote],
    })
    if (quoted === null) return takeUp(await reload(record), { ...run, isFollowing: true })
    if (run.preimage !== undefined) return keepProof(quoted, run, { preimage: run.preimage })
    return show(quoted, run)
  }

  /** Goes on where a record stopped. The order is polled first: whoever knows its id needs no other request. */
  async function takeUp(record: PurchaseRecord, run: Run): Promise<unknown> {
    const { state } = record
    if (state === 'delivered') return record.resource
    const preimage = record.preimage ?? run.preimage
    if (preimage !== undefined) {
      if (!(await isProof(preimage, lastOf(record).paymentHash))) {
        throw new MayflyError('second payment refused', 0)
      }
      return state === 'paid' ? collectPaid(record, run) : keepProof(record, run, { preimage })
    }
    if (isEndless && state === 'quoted') return show(record, run)
    const said = await look(record, run)
    if (said.resource !== undefined) return deliver(record, said.resource)
    if (state !== 'quoted') {
      if (run.wallet) return askWallet(record, run, said)
      if (said.refusal) throw said.refusal
      report(record, run, 'uncertain')
      return follow(record, run)
    }
    if (said.refusal) throw said.refusal
    check(record, lastOf(record), { run, at: said.at })
    await checkPrice(record, lastOf(record), run)
    return show(record, run, { said })
  }

  /** Shows a checked invoice, and waits for it or pays it. */
  async function show(
    record: PurchaseRecord,
    run: Run,
    known: { said?: Said } = {},
  ): Promise<unknown> {
    report(record, run, 'invoice')
    await run.onInvoice?.(lastOf(record))
    run.signal?.throwIfAborted()
    return run.wallet ? payFrom(record, run, known) : follow(record, run)
  }

  /** Asks the wallet that was asked to pay, and hands it the same invoice again if that is safe. */
  async function askWallet(record: PurchaseRecord, run: Run, said: Said): Promise<unknown> {
    const { wallet } = await walletOf(record, run)
    let answer: KnownPayment
    try {
      answer = await lookUp(wallet, record, run)
    } catch (error) {
      return uncertain(record, run, { cause: error, said })
    }
    if (answer.state === 'paid') return keepProof(answer.record, run, answer)
    if (answer.state === 'pending') return uncertain(record, run, { said })
    const expiresAt = Date.parse(lastOf(record).expiresAt)
    const isFailed = answer.state === 'failed' || wallet.keepsEveryAttempt === true
    // Without a service there is one clock, and it may be ahead: what the wallet does not know stays unknown.
    const isOver = record.service === null ? answer.state === 'failed' : isFailed
    if (isOver && earlierOf(record, said) >= expiresAt + LATE_MS) {
      const failed = (await write(record, { state: 'failed' })) ?? record
      if (run.ask) return begin(failed, run)
      // Whatever else the service says of the order, both clocks say that its invoice is over.
      const { refusal } = said
      throw refusal?.phrase === 'order expired' ? refusal : new MayflyError('invoice expired', 0)
    }
    // An earlier call may be under way, of which the wallet says nothing yet.
    if (record.state === 'paying' && !isFailed && isJustHanded(lastOf(record), now())) {
      return uncertain(record, run, { said })
    }
    // Our clock may be behind, so nothing is handed over before the service has said what time it is.
    if (laterOf(said) >= expiresAt || said.isSilent || said.refusal || run.isFollowing) {
      return uncertain(record, run, { said })
    }
    check(record, lastOf(record), { run, at: said.at })
    await checkPrice(record, lastOf(record), run)
    return payFrom(record, run, { said, answer })
  }

  /** Hands the invoice to the wallet, once the record says so. */
  async function payFrom(
    record: PurchaseRecord,
    run: Run,
    known: { said?: Said; answer?: KnownPayment } = {},
  ): Promise<unknown> {
    const { wallet, id } = await walletOf(record, run)
    const invoice = lastOf(record)
    // Time has passed while it was shown.
    check(record, invoice, { run, at: known.said?.at ?? null })
    let claimed: PurchaseRecord | null
    try {
      const answer = known.answer ?? (await lookUp(wallet, record, run))
      if (answer.state === 'paid') return await keepProof(answer.record, run, answer)
      claimed = await write(record, {
        state: 'paying',
        wallet: id,
        invoices: [...record.invoices.slice(0, -1), handed(record, wallet, now())],
      })
      if (claimed !== null && answer.state === 'pending') return await uncertain(claimed, run, {})
    } catch (error) {
      if (!(error instanceof WalletError)) throw error
      // The wallet cannot be asked, or the day's budget is spent. Nothing was handed over now.
      throw record.state === 'paying' ? outcomeUnknown(error) : paymentFailed(error)
    }
    if (claimed === null) {
      const other = await reload(record)
      if (other.state === 'delivered') return other.resource
      return uncertain(other, { ...run, isFollowing: true }, {})
    }
    report(claimed, run, 'paying')
    let paid: WalletPayment
    try {
      paid = await payWith(wallet, invoice, run)
    } catch (cause) {
      if (!(cause instanceof WalletError && cause.outcome === 'not paid')) {
        return uncertain(claimed, run, { cause })
      }
      // Nobody knows the end of an earlier call, so the wallet's no to this one is not the last word.
      if (record.state === 'paying') {
        throw outcomeUnknown(new WalletError(cause.message, 'unknown', { cause }))
      }
      await write(claimed, { state: 'failed' })
      throw paymentFailed(cause)
    }
    return keepProof(claimed, run, paid)
  }

  /** Writes the proof of the payment before anything is done with it. */
  async function keepProof(
    record: PurchaseRecord,
    run: Run,
    { preimage, feeMsat }: { preimage: string; feeMsat?: number },
  ): Promise<unknown> {
    const { invoices } = record
    const fee = feeMsat === undefined ? {} : { feeMsat }
    const kept = (await keep(record, { state: 'paid', invoices, preimage, ...fee })) ?? {
      ...record,
      preimage,
    }
    return orPhrase('paid but not collected', null, () => {
      report(kept, run, 'paid')
      return collectPaid(kept, run)
    })
  }

  async function collectPaid(record: PurchaseRecord, run: Run): Promise<unknown> {
    if (record.service === null) return deliver(record, { preimage: record.preimage })
    return follow(record, run)
  }

  /** The outcome is unknown to the wallet, so the order tells. */
  async function uncertain(
    record: PurchaseRecord,
    run: Run,
    { cause = null, said = { at: null } }: { cause?: unknown; said?: Said },
  ): Promise<unknown> {
    if (record.service === null) throw outcomeUnknown(cause)
    if (said.refusal) throw said.refusal
    return orPhrase('payment outcome unknown', cause, () => {
      report(record, run, 'uncertain')
      return follow(record, run)
    })
  }

  /**
   * Polls until the service has delivered the order, or refuses it; not for longer than it can be paid, or for ten
   * minutes what is paid.
   */
  async function follow(record: PurchaseRecord, run: Run): Promise<unknown> {
    const isPaid = record.preimage !== undefined
    const overAt = Date.parse(lastOf(record).expiresAt) + LATE_MS
    const begunAt = performance.now()
    for (;;) {
      const answer = await collecting(pollOf(lastOf(record), { ...run, ...record }))
      if (answer.status === 200) return deliver(record, resourceOf(answer))
      // A network's own page may redirect until somebody has signed in there.
      const isElsewhere = answer.status < 400
      if (answer.status !== 402 && !isElsewhere) throw errorOf(answer)
      refuseOther(answer, lastOf(record))
      const isOver = isPaid
        ? performance.now() - begunAt > COLLECT_MS
        : !isEndless && now() >= overAt
      if (isOver) {
        throw new MayflyError(isPaid ? 'paid but not collected' : LEFT[record.state], 0)
      }
      await wait(retryAfterSeconds(answer.headers) ?? POLL_SECONDS, run.signal)
      if (run.isFollowing && (await reload(record)).state === 'failed') {
        throw new MayflyError('payment failed', 0)
      }
    }
  }

  /** Polls once. A service that does not answer says nothing. */
  async function look(record: PurchaseRecord, run: Run): Promise<Said> {
    if (record.service === null) return { at: null }
    let answer: ApiResponse
    try {
      answer = await request(pollOf(lastOf(record), { ...run, ...record }))
    } catch (error) {
      // A purchase that reached a wallet goes on without the service, by what the wallet says.
      if (record.state === 'quoted' || run.signal?.aborted) throw error
      return { at: null, isSilent: true }
    }
    const at = dateOf(answer)
    if (answer.status === 200) return { resource: resourceOf(answer), at }
    if (answer.status !== 402) return isLost(answer) ? { at } : { refusal: errorOf(answer), at }
    refuseOther(answer, lastOf(record))
    return { at }
  }

  async function deliver(record: PurchaseRecord, resource: unknown): Promise<unknown> {
    await keep(record, { state: 'delivered', resource })
    return resource
  }

  /** Writes a proof, or what was bought, on top of what other calls have written of the same invoice since. */
  async function keep(
    record: PurchaseRecord,
    got: Partial<PurchaseRecord>,
  ): Promise<PurchaseRecord | null> {
    for (let on: PurchaseRecord | null = record; on !== null; ) {
      const written = await write(on, got)
      if (written !== null) return written
      on = await store.load(record.idempotencyKey)
      const isOther = on?.state === 'delivered' || on?.invoices.length !== record.invoices.length
      if (isOther) return null
    }
    return null
  }

  /** Writes the next state. Null if another call has written since, or has begun the same purchase. */
  async function write(
    record: PurchaseRecord,
    changes: Partial<PurchaseRecord>,
  ): Promise<PurchaseRecord | null> {
    const next = { ...record, ...changes, revision: record.revision + 1 }
    return (await store.save(next)) ? next : null
  }

  async function reload({ idempotencyKey }: PurchaseRecord): Promise<PurchaseRecord> {
    const record = await store.load(idempotencyKey)
    // Another process has it, and keeps it elsewhere now.
    if (record === null) throw new MayflyError('already delivered', 0)
    return record
  }

  /** All checks of an invoice but its price in the catalogue. */
  function check(
    { product, planId }: PurchaseRecord,
    quote: PaymentQuote,
    { run, at }: { run: Run; at: number | null },
  ): void {
    checkQuote(quote, { product, planId, maxSats: run.maxSats, now: Math.max(now(), at ?? 0) })
  }

  /** Nobody looks at an invoice that a wallet pays, so its price must be the one on sale. */
  async function checkPrice(
    { product, planId }: PurchaseRecord,
    { amountSats }: PaymentQuote,
    { wallet }: Run,
  ): Promise<void> {
    if (!wallet || product === null) return
    const catalog = await request({ path: '/api/catalog' })
    if (catalog.status !== 200) throw errorOf(catalog)
    const priceSats = priceIn(catalog.body, product, planId)
    if (priceSats === amountSats) return
    const cause = new RangeError(`${amountSats} sat, and its catalogue says ${priceSats}`)
    throw new MayflyError('price disagrees', 0, { cause })
  }

  const laterOf = ({ at }: Said): number => Math.max(now(), at ?? 0)

  /** What time it is by whichever clock is behind. Never, if the service's is not known. */
  function earlierOf({ service: seller }: PurchaseRecord, { at }: Said): number {
    if (seller === null) return now()
    return at === null ? 0 : Math.min(now(), at)
  }

  return {
    /** Buys from a wallet, or with an invoice that is shown. Resolves to the resource. */
    buy,

    /** Goes on with a purchase of the store, of which its key is enough. @throws MayflyError `order not found`. */
    async resume(idempotencyKey: string, { maxSats, ...terms }: Resumption): Promise<unknown> {
      const record = await store.load(idempotencyKey)
      if (record === null) throw new MayflyError('order not found', 0)
      const wallet = terms.wallet ?? options.wallet
      const ceiling = maxSats ?? options.maxSats
      return takeUp(record, { ...terms, wallet, maxSats: ceiling })
    },

    /** Pays an invoice that was given as it is. Resolves to its preimage. */
    async payInvoice(
      bolt11: string,
      { wallet, maxSats, signal }: Pick<Run, 'maxSats' | 'signal'> & { wallet: Wallet },
    ): Promise<string> {
      const quote = invoiceQuote(bolt11)
      const run: Run = { wallet, maxSats, signal }
      const idempotencyKey = `pay-${await sha256(new TextEncoder().encode(quote.bolt11))}`
      const order = { path: quote.bolt11, product: null, planId: null }
      const fresh = await newRecord(order, { idempotencyKey, service: null, maxSats })
      const known = await store.load(idempotencyKey)
      if (known !== null && known.state !== 'quoted') {
        return preimageOf(await takeUp(known, run))
      }
      check(fresh, quote, { run, at: null })
      const quoted = known ?? (await write(fresh, { invoices: [quote] })) ?? (await reload(fresh))
      return preimageOf(await payFrom(quoted, run))
    },
  }
}

function report(
  record: PurchaseRecord,
  { onProgress }: Run,
  stage: PurchaseProgress['stage'],
): void {
  const { idempotencyKey, preimage } = record
  const proof = stage === 'paid' && preimage !== undefined ? { preimage } : {}
  onProgress?.({ stage, quote: lastOf(record), idempotencyKey, ...proof })
}

/** An invoice as a quote that nobody has made. */
function invoiceQuote(bolt11: string): PaymentQuote {
  const { amountMsat, paymentHash, expiresAt, network } = decodeInvoice(bolt11)
  return {
    orderId: '',
    product: null,
    planId: null,
    amountSats: (amountMsat ?? 0) / 1000,
    bolt11: bolt11.toLowerCase(),
    paymentHash,
    expiresAt: new Date(expiresAt).toISOString(),
    network,
    memo: '',
    durationSeconds: 0,
  } as unknown as PaymentQuote
}

const preimageOf = (paid: unknown): string => (paid as { preimage: string }).preimage

const paymentFailed = (cause: unknown): MayflyError =>
  new MayflyError('payment failed', 0, { cause })

/** Rethrows the service's refusals. Any other failure becomes an error with this phrase. */
async function orPhrase(
  phrase: MayflyPhrase,
  cause: unknown,
  work: () => Promise<unknown>,
): Promise<unknown> {
  try {
    return await work()
  } catch (error) {
    const isOurs = error instanceof MayflyError
    if (isOurs && (isFinal(error.status) || error.phrase === 'payment failed')) throw error
    throw new MayflyError(phrase, 0, { cause: cause ?? error })
  }
}
