/** Services that sell: honest ones, one that loses its last orders to a backup, and hostile ones. */
import { createInvoices, type SimulatedInvoice } from '../world/invoices.ts'
import type { Scheduler } from '../world/scheduler.ts'

export const HOSTILITIES = [
  'other invoices',
  'other amounts',
  'dear catalogue',
  'dear quotes',
  'other hashes',
  'reused hashes',
  'expired quotes',
  'endless 402',
  'late settlement',
  'silent polls',
] as const

export type Kind = 'honest' | 'restored' | (typeof HOSTILITIES)[number]

/** An invoice, and what its payee makes of a payment. */
export type Sold = SimulatedInvoice & {
  amountMsat: number
  key: string
  orderId: string
  isPaid: boolean
}

const OFFERS_OTHERS: readonly Kind[] = ['other invoices', 'reused hashes']

export const PRICE_SATS = 21
const EXPIRY_SECONDS = 900
const NODE_KEY = new Uint8Array(32).fill(7)

export type Seller = ReturnType<typeof createSeller>

export function createSeller(scheduler: Scheduler, kind: Kind) {
  const { random } = scheduler
  const node = createInvoices(NODE_KEY)
  /** Every invoice that was ever made, also of orders that a backup has lost. */
  const invoices: Sold[] = []
  let orders = new Map<string, Sold>()
  let losesAt = kind === 'restored' ? random.int(1_000, 600_000) : Number.POSITIVE_INFINITY

  function make(key: string, before?: Sold): Sold {
    const isExpired = kind === 'expired quotes' && random.chance(0.5)
    const now = Math.floor(scheduler.wallNow(rightClock) / 1000)
    const amountMsat = kind === 'other amounts' ? 90_000 : amountSats() * 1000
    const made = node.make({
      amountMsat,
      expirySeconds: EXPIRY_SECONDS,
      timestamp: now - (isExpired ? 2 * EXPIRY_SECONDS : 0),
      description: 'an inbox',
      ...(kind === 'reused hashes' && before ? { preimage: before.preimage } : {}),
    })
    const orderId = `order_${invoices.length}`
    const sold = { ...made, amountMsat, key, orderId, isPaid: false }
    invoices.push(sold)
    return sold
  }

  const amountSats = (): number =>
    kind === 'dear catalogue' ? 500 : kind === 'dear quotes' ? 90 : PRICE_SATS

  function quote(sold: Sold): Response {
    const shownHash = kind === 'other hashes' ? 'ab'.repeat(32) : sold.paymentHash
    return answer(402, {
      orderId: sold.orderId,
      product: 'catch',
      planId: 'spark',
      amountSats: amountSats(),
      bolt11: sold.bolt11,
      paymentHash: shownHash,
      network: 'regtest',
      memo: 'an inbox',
      expiresAt: new Date(sold.expiresAt).toISOString(),
      durationSeconds: 3600,
    })
  }

  function answer(status: number, body: unknown): Response {
    const date = new Date(scheduler.wallNow(rightClock)).toUTCString()
    return Response.json(body, { status, headers: { date } })
  }

  /** Of an order that exists. */
  function state(sold: Sold): Response {
    if (sold.isPaid && kind !== 'endless 402') {
      return answer(200, { resource: { product: 'catch', publicId: `catch_${sold.orderId}` } })
    }
    if (kind === 'other invoices' && random.chance(0.3)) return quote(make(sold.key, sold))
    const isOver = scheduler.wallNow(rightClock) >= sold.expiresAt
    if (isOver && kind !== 'endless 402') return answer(404, { error: 'order expired' })
    return quote(sold)
  }

  function order(key: string): Response {
    const known = orders.get(key)
    const isOver = known && scheduler.wallNow(rightClock) >= known.expiresAt
    // One that wants to be paid again offers another invoice, at once or when the first one is over.
    const isNew =
      kind === 'late settlement' ? isOver && !known.isPaid : OFFERS_OTHERS.includes(kind)
    if (known && !isNew) return state(known)
    const sold = make(key, known)
    orders.set(key, sold)
    return quote(sold)
  }

  return {
    kind,
    invoices,
    handle(path: string, key: string): Response {
      if (scheduler.elapsed() > losesAt) {
        orders = new Map()
        losesAt = Number.POSITIVE_INFINITY
      }
      if (path === '/api/catalog') {
        const plans = [{ planId: 'spark', priceSats: kind === 'dear catalogue' ? 500 : PRICE_SATS }]
        return answer(200, { checkoutEnabled: true, products: { catch: { plans } } })
      }
      if (path === '/api/payments/catch') return order(key)
      if (kind === 'silent polls') throw new Error('no answer')
      const sold = [...orders.values()].find(({ orderId }) => path.endsWith(`/${orderId}`))
      return sold && sold.key === key ? state(sold) : answer(404, { error: 'order not found' })
    },
    /** Whether the payee's node takes this payment. A hostile one takes everything, as often as it comes. */
    accepts(bolt11: string): Sold | null {
      const sold = invoices.find((each) => each.bolt11 === bolt11)
      if (!sold) return null
      const isHostile = kind !== 'honest' && kind !== 'restored'
      const isOpen = !sold.isPaid && scheduler.wallNow(rightClock) < sold.expiresAt
      if (!isOpen && !isHostile) return null
      // One that waits until its invoice is over, and lets nobody see what time it is.
      if (kind === 'silent polls' && scheduler.wallNow(rightClock) < sold.expiresAt) return null
      sold.isPaid = true
      return sold
    },
  }
}

/** Of a machine whose clock is right, whoever asks. */
export const rightClock = (): number => 0
