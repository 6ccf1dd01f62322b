/**
 * A wallet over Nostr Wallet Connect (NIP-47), on the client of @getalby/sdk. Relays carry the encrypted
 * requests and answers, which may arrive late, twice or never.
 */
import type { Clock } from '../../lib/clock.ts'
import { readableInvoice } from '../../protocol/bolt11.ts'
import { provesPayment } from '../../protocol/preimage.ts'
import {
  type InvoiceRequest,
  type InvoiceStatus,
  type NodeInfo,
  UnknownInvoice,
} from '../lightning.ts'
import type { AccessProblem } from '../node/access.ts'
import { expiryOf, unpaidStatus } from '../node/check-invoice.ts'
import { NodeError, supportedNetwork } from '../node/error.ts'
import { type Fields, jsonOf } from '../node/json-fields.ts'
import { createNode, type LightningNode, NODE_TIMEOUTS, type NodeTimeouts } from '../node/node.ts'
import type { NwcAccess } from '../urls.ts'
import { createNwcCalls } from './calls.ts'
import { createNwcClient, type NwcClient } from './client.ts'

export type NwcOptions = NwcAccess & {
  clock: Clock
  timeouts?: Partial<NodeTimeouts>
  onWarning?: (message: string) => void
}

const NODE = 'NWC'
const read = jsonOf(NODE)

const NEEDED = ['make_invoice', 'lookup_invoice'] as const

// A relay, and a wallet on a telephone, are slower than a node in the same network.
const TIMEOUTS: NodeTimeouts = { ...NODE_TIMEOUTS, lookupMs: 10_000, infoMs: 10_000 }

/** Needs a connection for `get_info`, `make_invoice` and `lookup_invoice`. */
export function createNwc(options: NwcOptions): LightningNode {
  return nwcOver(createNwcClient(options.url), options)
}

/** The wallet behind a client, which it closes. */
export function nwcOver(client: NwcClient, options: Omit<NwcOptions, 'url'>): LightningNode {
  const { clock, onWarning = () => {} } = options
  const timeouts = { ...TIMEOUTS, ...options.timeouts }
  const calls = createNwcCalls({ client, timeouts, onWarning })
  /** The methods that the connection allows, by the wallet's last answer. Many wallets do not list them. */
  let methods: unknown

  async function info(): Promise<NodeInfo> {
    const what = 'asking for the wallet'
    const answer = read.object(
      await calls.call({ what, method: 'get_info', params: {}, timeoutMs: timeouts.infoMs }),
    )
    methods = answer.methods
    const named = read.string(answer, 'network').toLowerCase()
    const network = supportedNetwork(NODE, named === 'bitcoin' ? 'mainnet' : named)
    // Wallets do not report whether they are synced, so a wallet that answers counts as synced.
    // Many wallets may share a node, so its key does not identify whose invoices these are.
    return { network, synced: true, nodeId: null }
  }

  async function createInvoice({ amountMsat, memo, expirySeconds }: InvoiceRequest) {
    const answer = read.object(
      await calls.call({
        what: 'making an invoice',
        method: 'make_invoice',
        params: { amount: amountMsat, description: memo, expiry: expirySeconds },
        timeoutMs: timeouts.createMs,
      }),
    )
    const bolt11 = read.string(answer, 'invoice')
    // Some wallets leave the hash out. The invoice always has it.
    const paymentHash =
      answer.payment_hash === undefined ? hashOf(bolt11) : read.hash(answer, 'payment_hash')
    return { bolt11, paymentHash }
  }

  async function lookupInvoice(paymentHash: string): Promise<InvoiceStatus> {
    const answer = read.object(await fetchInvoice(paymentHash))
    return statusOf(answer, { paymentHash, now: clock.now() })
  }

  async function fetchInvoice(paymentHash: string): Promise<unknown> {
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
      await info()
      const allowed = methods
      if (!Array.isArray(allowed)) return null
      const missing = NEEDED.filter((method) => !allowed.includes(method))
      return missing.length === 0 ? null : { sentence: lacks(missing.join(', ')), isAway: false }
    } catch (error) {
      if (!(error instanceof NodeError)) throw error
      return problem(error, options.relays)
    }
  }

  return createNode(
    {
      info,
      createInvoice,
      lookupInvoice,
      watch: calls.watch,
      checkAccess,
      close: async () => calls.close(),
    },
    { clock },
  )
}

function problem(error: NodeError, relays: string[]): AccessProblem {
  const isAway = error.reason === 'unreachable' || error.reason === 'timeout'
  if (error.reason === 'timeout') {
    // A wallet does not answer a key that it does not know.
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

function hashOf(bolt11: string): string {
  const invoice = readableInvoice(bolt11)
  if (invoice === null) throw read.malformed('invoice is unreadable')
  return invoice.paymentHash
}

/**
 * The state of an invoice in a wallet's answer to `lookup_invoice` (NIP-47). A missing or unknown state is an error, because an open invoice becomes dead, although the buyer may have
 * paid. Without a state, the time of settlement together with the preimage means settled. The preimage alone
 * proves nothing, since the wallet made it. NIP-47 has no final state for an unpaid invoice: a wallet that
 * reports `expired` may hold an HTLC.
 * @throws NodeError also if the answer is about another invoice.
 */
export function statusOf(
  answer: Fields,
  { paymentHash, now }: { paymentHash: string; now: number },
): InvoiceStatus {
  const isOther = answer.payment_hash !== undefined && answer.payment_hash !== paymentHash
  if (isOther || answer.type === 'outgoing') {
    throw read.malformed('the wallet answered for another invoice')
  }
  const { state } = answer
  if (state === 'settled') return { state: 'settled' }
  const isSettled = (read.count(answer, 'settled_at') ?? 0) > 0
  switch (state) {
    case 'pending':
    case 'expired':
      if (isSettled) throw read.malformed('an invoice is settled and not settled')
      return unpaidStatus(expiresAt(answer), now)
    // The wallet holds an HTLC.
    case 'accepted':
      return { state: 'open' }
    default:
      if (isSettled && isOpenedBy(answer.preimage, paymentHash)) return { state: 'settled' }
      throw read.malformed('an invoice is in an unknown state')
  }
}

function isOpenedBy(preimage: unknown, paymentHash: string): boolean {
  return typeof preimage === 'string' && provesPayment(preimage, paymentHash)
}

function expiresAt({ expires_at: seconds, invoice }: Fields): number | undefined {
  const isTime = Number.isSafeInteger(seconds) && Number(seconds) > 0
  return isTime ? Number(seconds) * 1000 : expiryOf(invoice)
}
