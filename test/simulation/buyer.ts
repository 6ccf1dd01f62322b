/**
 * Buyers of every product by every flow. They lose answers, change their address, take another key for each
 * attempt, pay late or never, and collect what they have paid for once the faults are over.
 */

import {
  l402Authorization,
  l402Challenges,
  paymentAuthorization,
  paymentChallenges,
} from '../support/payer.ts'
import { isRandom, keyOf, offerIn, type Quote } from './offer.ts'
import { phraseOf, type Run } from './run-context.ts'
import { guessKey } from './thief.ts'
import { uuidV4 } from './world/globals.ts'
import type { Answer, Ask } from './world/service.ts'

export type Product = 'catch' | 'whisper' | 'pulse'
export type Flow = 'native' | 'payment' | 'l402' | 'one-url payment' | 'one-url l402'

export type Bought = { product: Product; publicId: string; resource: Record<string, string> }

export type Order = {
  product: Product
  /** The headers that belong to the order besides its key and flow. */
  headers?: Record<string, string>
  body?: Uint8Array | string
  /** The capability that this purchase extends. */
  extends?: Bought
}

const bodyOf = ({ body }: Order): Uint8Array | string => body ?? '{"planId":"spark"}'

const MAX_ATTEMPTS = 400
/** Few attempts are lost to a hold. */
const HELD_PAUSE_MS = 10_000
/** A client waits twice as long each time that nobody answers, up to eight times. */
const LONGEST_SILENCE = 3
const ADDRESSES = ['203.0.113.7', '203.0.113.99', '198.51.100.20', '192.0.2.41']
export const FLOWS: readonly Flow[] = [
  'native',
  'payment',
  'l402',
  'one-url payment',
  'one-url l402',
]

/** A capability, or the new end of one that was extended. */
type Delivery = { resource?: { publicId: string } & Record<string, string>; expiresAt: string }

type Asked = { ask: Ask; askedWhilePaid: boolean }

/**
 * One purchase, from its first request to its end.
 * @returns what was delivered, or null if the buyer never paid.
 */
export async function buy(
  run: Run,
  who: string,
  { order, flow, isPatient = false }: { order: Order; flow: Flow; isPatient?: boolean },
): Promise<Bought | null> {
  const { world, ledger } = run
  const { scheduler, node } = world
  const { random } = scheduler
  const isByUrl = flow.startsWith('one-url')
  const isNative = flow === 'native'
  const target = order.extends
    ? `/api/${order.product}/${order.extends.publicId}/extend`
    : `/api/payments/${order.product}`
  const keys = [keyOf(run, who)]
  /** The invoice of this purchase: what a buyer without a word of ours would pay. */
  let quote: Quote | null = null
  let challenge: Answer | null = null
  let preimage: string | null = null
  let address = random.pick(ADDRESSES)
  let extra = random.int(0, 3)
  let first: Bought | null = null
  let isCheating = false
  /** Whether the key may name a new order, since a restored backup does not know the one that was paid. */
  let isReopened = false
  /** Whether a restored backup sends the buyer back, who had all of it before. */
  let isBack = false
  /** How often in a row nobody has answered. */
  let silence = 0
  const paid = Promise.withResolvers<void>()
  // The answer to an extension has no token, so it is worth nothing to a stranger.
  if (!isByUrl && !order.extends && !isRandom(keys[0] as string)) {
    const headers = { ...order.headers, 'idempotency-key': keys[0] as string }
    const asked = { method: 'POST', target, headers: typed(headers), body: bodyOf(order) } as const
    const afterwards = () => noteReopened({ headers })
    void guessKey(run, who, { ask: asked, paid: paid.promise, afterwards })
    // Some strangers come first.
    if (random.chance(0.5)) await scheduler.sleep(random.next() * 15_000)
  }

  await askUntilOver()
  if (first) {
    run.buyers.set(paymentHash(), async () => {
      isBack = true
      extra = 0
      await askUntilOver()
    })
  }
  return first

  async function askUntilOver(): Promise<void> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      if (takeFromOperator()) return
      if (random.chance(0.05)) address = random.pick(ADDRESSES)
      const ask = nextAsk()
      const askedWhilePaid = preimage !== null
      const answer = await run.ask(`${who} ${order.product} ${flow}`, ask)
      noteReopened(ask)
      if (answer !== null && (await take(answer, { ask, askedWhilePaid }))) return
      silence = answer === null ? Math.min(silence + 1, LONGEST_SILENCE) : 0
      const pause = random.chance(0.9) ? random.next() * 800 : random.next() * 12_000
      // A clock that went back sells and settles nothing for a quarter of an hour at most.
      const isHeld = run.isCalm() && answer?.status === 503
      await scheduler.sleep(isHeld ? HELD_PAUSE_MS : pause * 2 ** silence)
    }
    if (isBack) ledger.break('a restore loses no payment', `${who} is back and gets nothing`)
    else if (preimage !== null) ledger.break('paid means delivered', `${who} has paid and gave up`)
    else ledger.break('rest is reached', `${who} has neither paid nor been refused`)
  }

  function paymentHash(): string {
    return quote?.paymentHash ?? ''
  }

  /** The operator gives the capability to a buyer who cannot collect it, and money to one who gets nothing. */
  function takeFromOperator(): boolean {
    const body = ledger.handedOut.get(paymentHash())
    if (body !== undefined) takeBody(body)
    return body !== undefined || ledger.paidBack.has(paymentHash())
  }

  function typed(headers: Record<string, string>): Record<string, string> {
    return order.product === 'whisper'
      ? headers
      : { ...headers, 'content-type': 'application/json' }
  }

  /** A key alone says nothing of a payment: it opens a new order, also if the answer is lost. */
  function noteReopened({ headers = {} }: Pick<Ask, 'headers'>): void {
    const isProven =
      headers.authorization !== undefined || headers['payment-preimage'] !== undefined
    if (isLost() && !isProven) isReopened = true
  }

  function nextAsk(): Ask {
    const authorization = credential()
    const headers: Record<string, string> = { ...order.headers }
    if (order.extends && preimage === null) {
      headers['x-owner-token'] = String(order.extends.resource.ownerToken)
    }
    if (authorization !== null) headers.authorization = authorization
    else if (!isNative && !isByUrl) headers['x-payment-protocol'] = flow
    if (isByUrl) {
      const { 'x-whisper-plan': _plan, ...rest } = headers
      const protocol = flow === 'one-url l402' ? '/l402' : ''
      return { target: `/api/buy/${order.product}/spark${protocol}`, headers: rest, from: address }
    }
    const isPoll = isNative && quote?.orderId && random.chance(0.5)
    // A client that keeps nothing but its wallet has another key for each attempt.
    if (authorization !== null && !isCheating && random.chance(0.1)) keys.push(uuidV4())
    const key = keys.at(-1) as string
    if (isPoll) {
      const poll: Record<string, string> = {}
      if (random.chance(0.8)) poll['idempotency-key'] = key
      if (preimage !== null && random.chance(0.5)) poll['payment-preimage'] = preimage
      const polled = order.extends ? 'extensions' : 'payments'
      return { target: `/api/${polled}/${quote?.orderId}`, headers: poll, from: address }
    }
    headers['idempotency-key'] = key
    if (isNative && preimage !== null && random.chance(0.5)) headers['payment-preimage'] = preimage
    return { method: 'POST', target, headers: typed(headers), body: bodyOf(order), from: address }
  }

  /** Some try a preimage of their own before they pay. */
  async function cheat(): Promise<void> {
    isCheating = true
    preimage = Buffer.from(random.bytes(32)).toString('hex')
    const answer = await run.ask(`${who} ${order.product} ${flow} unpaid`, nextAsk())
    preimage = null
    isCheating = false
    if (answer?.status === 200)
      ledger.break('nothing for nothing', `${who} was delivered without a payment`)
  }

  function credential(): string | null {
    if (preimage === null || challenge === null || isNative) return null
    const challenges = challenge.lines('www-authenticate')
    if (flow.endsWith('l402')) {
      const [l402] = l402Challenges(challenges)
      return l402 ? l402Authorization({ macaroon: l402.macaroon, preimage }) : null
    }
    const [payment] = paymentChallenges(challenges)
    return payment ? paymentAuthorization({ challenge: payment, payload: { preimage } }) : null
  }

  /** @returns whether the purchase is over. */
  async function take(answer: Answer, asked: Asked): Promise<boolean> {
    switch (answer.status) {
      case 402:
        return takeQuote(answer, asked)
      case 200:
        return takeDelivery(answer)
      case 400:
        return takeRefusal(answer)
      case 404:
        return takeEnd(answer)
      case 401:
      case 403:
        if (preimage === null)
          ledger.break('answers make sense', `${who} unpaid: ${answer.status} ${answer.text}`)
        // A restored backup knows neither the owner's token nor what was extended, and the operator has paid it back.
        return isLost() && isRefunded()
      case 409:
        return preimage === null && phraseOf(answer) === 'cannot be extended'
      case 429:
      case 503:
        return false
      case 500:
        if (world.disk.failing === 0)
          ledger.break('answers make sense', `${who}: ${answer.status} ${answer.text}`)
        return false
      default:
        ledger.break('answers make sense', `${who}: ${answer.status} ${answer.text}`)
        return true
    }
  }

  /** A plan may be off sale, for whoever has no quote, or was paid back and may buy again. */
  function takeRefusal(answer: Answer): boolean {
    const mayOpen = isByUrl && (preimage === null || isRefunded())
    const isUnquoted = quote === null || mayOpen || isLost()
    if (phraseOf(answer) === 'invalid plan' && run.settings.wasOff(order.product)) {
      if (!isUnquoted) ledger.break('an open quote stands', `${who}: ${answer.text}`)
      return !isUnquoted
    }
    // A restored backup may not know the switch to which the secret is bound.
    if (ledger.restores > 0 && order.headers?.['x-whisper-reveal-when']) return true
    ledger.break('answers make sense', `${who}: ${answer.status} ${answer.text}`)
    return true
  }

  /** Whether a restored backup does not know the order. */
  function isLost(): boolean {
    return ledger.lost.has(paymentHash())
  }

  function isRefunded(): boolean {
    const [row] = world.disk.read(
      'select state from purchase_order where payment_hash = $1',
      paymentHash(),
    )
    return row?.state === 'refunded'
  }

  async function takeQuote(answer: Answer, { ask, askedWhilePaid }: Asked): Promise<boolean> {
    const offered = offerIn(answer)
    // A poll says only that it is not settled yet.
    if (offered === null) return false
    if (quote !== null && offered.paymentHash !== quote.paymentHash) {
      if (askedWhilePaid && isLost() && !ask.headers?.authorization && isReopened) return false
      // Who was paid back may buy again, by another key. The order's own goes on to name it, unless a restored backup
      // has lost it.
      if ((isLost() || isByUrl || keys.length > 1) && isRefunded()) return true
      if (askedWhilePaid) {
        ledger.break(
          'nothing to pay for what is paid',
          `${who} paid ${quote.paymentHash} and is asked for another`,
        )
        return true
      }
      if (!isByUrl && !isLost()) {
        ledger.break(
          'one key, one invoice',
          `${who} was shown ${quote.paymentHash} and ${offered.paymentHash}`,
        )
        return true
      }
    }
    const { amountMsat } = node.invoices.get(offered.paymentHash) ?? { amountMsat: 0 }
    if (offered.amountSats * 1000 !== amountMsat) {
      ledger.break('an open quote stands', `${who} is asked for ${offered.amountSats}`)
    }
    ledger.orderIds.set(offered.paymentHash, isNative ? offered.orderId : null)
    quote = offered
    challenge = answer
    if (preimage !== null) return false
    if (!isNative && random.chance(0.1)) await cheat()
    const mood = isPatient ? 1 : random.next()
    // Goes away for good, thinks about it, or asks again first.
    if (mood < 0.05) return true
    if (mood < 0.15) await scheduler.sleep(random.next() * 70_000)
    else if (mood < 0.25) return false
    const done = await node.pay(offered.bolt11)
    ledger.note(`${who} pays ${offered.paymentHash}: ${done.kind}`)
    if (done.kind === 'refused') return true
    if (done.kind === 'failed') return false
    preimage = done.preimage
    paid.resolve()
    if (random.chance(0.1)) await node.pay(offered.bolt11)
    return false
  }

  function takeDelivery(answer: Answer): boolean {
    const state = node.invoices.get(paymentHash())?.state
    if (state !== 'settled' && state !== 'held') {
      ledger.break('nothing for nothing', `${who} has ${paymentHash()}, which is ${state}`)
    }
    if (ledger.paidBack.has(paymentHash())) {
      ledger.break('repaired or refunded', `${who} was paid back, and has ${answer.text}`)
    }
    takeBody(answer.text)
    return extra-- <= 0
  }

  function takeBody(text: string): void {
    const { resource, expiresAt } = JSON.parse(text) as Delivery
    const bodies = ledger.delivered.get(paymentHash()) ?? new Set()
    ledger.delivered.set(paymentHash(), bodies.add(text))
    if (bodies.size > 1) ledger.break('one delivery', `${paymentHash()} has ${bodies.size} bodies`)
    if (resource) first ??= { product: order.product, publicId: resource.publicId, resource }
    else if (order.extends) {
      first ??= order.extends
      ledger.extended.set(paymentHash(), { publicId: order.extends.publicId, expiresAt })
    }
  }

  function takeEnd(answer: Answer): boolean {
    const phrase = phraseOf(answer)
    // A poll that proves nothing learns that somebody has it; a repeat with the key says the rest.
    if (phrase === 'already delivered' && preimage !== null) return false
    if (phrase === 'proof of payment required' && preimage !== null) return false
    if (phrase === 'order expired' && preimage === null) return true
    // So has the order that the key has opened anew. The one that was paid waits for the operator.
    if (phrase === 'order expired' && isLost() && isReopened) return false
    // What is to be extended was destroyed meanwhile.
    if (phrase === 'not found' && order.extends && preimage === null) return true
    if (phrase === 'order refunded' && isRefunded()) return true
    if (phrase === 'order not found' && isLost()) {
      // Who has paid waits for the operator, and who has not begins again.
      if (preimage === null) quote = null
      return false
    }
    if (preimage !== null) {
      ledger.break('paid means delivered', `${who} has paid ${quote?.paymentHash}: 404 ${phrase}`)
      return true
    }
    if (phrase !== 'order expired') ledger.break('answers make sense', `${who}: 404 ${phrase}`)
    return true
  }
}
