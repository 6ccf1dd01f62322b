/**
 * A wallet over Nostr Wallet Connect (NIP-47), on the client of @getalby/sdk. The wallet is asked
 * through relays, which carry what they cannot read, late, twice or never.
 */
import type { Clock } from '../../lib/clock.ts'
import { decodeInvoice, InvalidInvoice } from '../../protocol/bolt11.ts'
import { provesPayment } from '../../protocol/preimage.ts'
import { type InvoiceStatus, type Lightning, type Network, UnknownInvoice } from '../lightning.ts'
import type { AccessProblem } from '../node/access.ts'
import { checkAsk, checkInvoice } from '../node/check-invoice.ts'
import { NodeError, supportedNetwork, UnsupportedNetwork } from '../node/error.ts'
import { type Fields, jsonOf } from '../node/json-fields.ts'
import type { LightningNode } from '../node/node.ts'
import { NODE_TIMEOUTS, type NodeTimeouts } from '../node/timeouts.ts'
import { createNwcCalls } from './calls.ts'
import type { NwcAccess } from './url.ts'

export type NwcOptions = NwcAccess & {
  clock: Clock
  timeouts?: Partial<NodeTimeouts>
  onWarning?: (message: string) => void
}

const NODE = 'NWC'
const read = jsonOf(NODE)

// NIP-47 has no final state for what was not paid: a wallet that says `expired` may hold an HTLC. This long
// after its expiry one is hardly still under way, and what we say then is a guess.
const GRACE_MS = 10 * 60_000

const NEEDED = ['make_invoice', 'lookup_invoice'] as const

// A relay and a wallet on somebody's telephone are slower than a node next door.
const TIMEOUTS: NodeTimeouts = { ...NODE_TIMEOUTS, lookupMs: 10_000, infoMs: 10_000 }

/** Needs a connection for `get_info`, `make_invoice` and `lookup_invoice`. */
export function createNwc(options: NwcOptions): LightningNode {
  const { url, clock, onWarning = () => {} } = options
  const timeouts = { ...TIMEOUTS, ...options.timeouts }
  const calls = createNwcCalls({ url, timeouts, onWarning })
  const closing = new AbortController()
  let network: Network | undefined

  async function askInfo(): Promise<Fields> {
    const what = 'asking for the wallet'
    const answer = read.object(
      await calls.call({ what, method: 'get_info', params: {}, timeoutMs: timeouts.infoMs }),
    )
    const named = read.string(answer, 'network').toLowerCase()
    network = supportedNetwork(NODE, named === 'bitcoin' ? 'mainnet' : named)
    return answer
  }

  async function info() {
    await askInfo()
    // What a wallet does not say: it answers, so it is thought to follow the chain.
    // Many wallets may share a node, so its key does not say whose invoices these are.
    return { network: network as Network, synced: true, nodeId: null }
  }

  const createInvoice: Lightning['createInvoice'] = async (ask) => {
    checkAsk(ask)
    const expected = network ?? (await info()).network
    const answer = read.object(
      await calls.call({
        what: 'making an invoice',
        method: 'make_invoice',
        params: { amount: ask.amountMsat, description: ask.memo, expiry: ask.expirySeconds },
        timeoutMs: timeouts.createMs,
      }),
    )
    const bolt11 = read.string(answer, 'invoice')
    // Some wallets leave the hash out; the invoice has it in any case.
    const paymentHash =
      answer.payment_hash === undefined ? hashOf(bolt11) : read.hash(answer, 'payment_hash')
    checkInvoice(bolt11, paymentHash, ask, expected, clock.now())
    return { bolt11, paymentHash }
  }

  const lookupInvoice: Lightning['lookupInvoice'] = async (paymentHash) => {
    if (!/^[0-9a-f]{64}$/.test(paymentHash)) throw new TypeError('not a payment hash')
    const answer = read.object(await look(paymentHash))
    const isOther = answer.payment_hash !== undefined && answer.payment_hash !== paymentHash
    if (isOther || answer.type === 'outgoing') {
      throw read.malformed('the wallet answered for another invoice')
    }
    return statusOf(answer, paymentHash, clock.now())
  }

  async function look(paymentHash: string): Promise<unknown> {
    try {
      return await calls.call({
        what: 'looking up an invoice',
        method: 'lookup_invoice',
        params: { payment_hash: paymentHash },
        timeoutMs: timeouts.lookupMs,
      })
    } catch (error) {
      const isUnknown = error instanceof NodeError && error.answer?.code === 'NOT_FOUND'
      throw isUnknown ? new UnknownInvoice() : error
    }
  }

  async function checkAccess(): Promise<AccessProblem | null> {
    try {
      const { methods } = await askInfo()
      if (!Array.isArray(methods)) return null
      const missing = NEEDED.filter((method) => !methods.includes(method))
      return missing.length === 0 ? null : { sentence: lacks(missing.join(', ')), isAway: false }
    } catch (error) {
      if (!(error instanceof NodeError)) throw error
      return problem(error, options.relays)
    }
  }

  return {
    info,
    createInvoice,
    lookupInvoice,
    watch: (onSettled, signal) => calls.watch(onSettled, AbortSignal.any([signal, closing.signal])),
    checkAccess,
    async close() {
      closing.abort()
      calls.close()
    },
  }
}

function problem(error: NodeError, relays: string[]): AccessProblem {
  const isAway = error.reason === 'unreachable' || error.reason === 'timeout'
  if (error instanceof UnsupportedNetwork) return { sentence: error.message, isAway }
  if (error.reason === 'timeout') {
    // A wallet does not answer a key that it does not know, either.
    const sentence =
      `${error.message}: the wallet behind ${hosts(relays)} does not answer; it is not running, ` +
      'or the connection of MAYFLY_LIGHTNING_URL was deleted there'
    return { sentence, isAway }
  }
  if (error.reason === 'unreachable') {
    return { sentence: `${error.message}: no relay answers at ${hosts(relays)}`, isAway }
  }
  const code = error.answer?.code
  if (code === 'RESTRICTED' || code === 'UNAUTHORIZED')
    return { sentence: lacks('get_info'), isAway }
  return { sentence: error.message, isAway }
}

function lacks(methods: string): string {
  return (
    `NWC: the connection does not allow ${methods}; make one in the wallet for make_invoice, ` +
    'lookup_invoice, get_info and notifications, and nothing else'
  )
}

const hosts = (relays: string[]): string => relays.map((relay) => new URL(relay).host).join(', ')

/**
 * What the wallet says of the invoice. A state that is missing or unknown says nothing, and is an error:
 * read as open it would end as dead, and the buyer has paid. Only a time of settlement together with the
 * preimage says as much as a state; the preimage alone proves nothing here, since it is the wallet's own.
 */
function statusOf(answer: Fields, paymentHash: string, now: number): InvoiceStatus {
  const { state } = answer
  if (state === 'settled') return { state: 'settled' }
  const isSettled = (read.count(answer, 'settled_at') ?? 0) > 0
  switch (state) {
    case 'pending':
    case 'expired':
      if (isSettled) throw read.malformed('an invoice is settled and not settled')
      return hasRunOut(answer, now) ? { state: 'dead', isFinal: false } : { state: 'open' }
    // An HTLC is held.
    case 'accepted':
      return { state: 'open' }
    default:
      if (isSettled && isOpenedBy(answer.preimage, paymentHash)) return { state: 'settled' }
      throw read.malformed('an invoice is in an unknown state')
  }
}

function hasRunOut(answer: Fields, now: number): boolean {
  const expiresAt = expiryOf(answer)
  return expiresAt !== undefined && now > expiresAt + GRACE_MS
}

function isOpenedBy(preimage: unknown, paymentHash: string): boolean {
  return typeof preimage === 'string' && provesPayment(preimage.toLowerCase(), paymentHash)
}

function expiryOf(answer: Fields): number | undefined {
  const seconds = answer.expires_at
  if (typeof seconds === 'number' && Number.isSafeInteger(seconds) && seconds > 0) {
    return seconds * 1000
  }
  if (typeof answer.invoice !== 'string') return undefined
  try {
    return decodeInvoice(answer.invoice).expiresAt
  } catch (error) {
    if (error instanceof InvalidInvoice) return undefined
    throw error
  }
}

function hashOf(bolt11: string): string {
  try {
    return decodeInvoice(bolt11).paymentHash
  } catch (error) {
    if (error instanceof InvalidInvoice) throw read.malformed('invoice is unreadable')
    throw error
  }
}
