/** Core Lightning over clnrest, the REST plugin that comes with it. */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'
import { isObject, objectIn } from '../../lib/json.ts'
import {
  type InvoiceRequest,
  type InvoiceStatus,
  type NodeInfo,
  UnknownInvoice,
} from '../lightning.ts'
import { findProblem } from '../node/access.ts'
import { type NodeAnswer, NodeError, supportedNetwork } from '../node/error.ts'
import { createNodeHttp, type NodeResponse } from '../node/http.ts'
import { type Fields, jsonOf, nodeIdOf } from '../node/json-fields.ts'
import { createNode, type LightningNode, NODE_TIMEOUTS, type NodeTimeouts } from '../node/node.ts'
import { type Cursor, type FollowOptions, keepFollowing } from '../node/watch.ts'
import type { ClnAccess } from '../urls.ts'

export type ClnOptions = ClnAccess & {
  clock: Clock
  /** The last settlement that `waitanyinvoice` reported, stored between runs. */
  cursor: Cursor
  timeouts?: Partial<NodeTimeouts>
  onWarning?: (message: string) => void
}

const NODE = 'Core Lightning'
const read = jsonOf(NODE)

const CREATE_RUNE =
  'make one with: lightning-cli createrune restrictions=' +
  `'[["method=invoice","method=listinvoices","method=waitanyinvoice","method=getinfo"]]'`

/** Needs a rune for `invoice`, `listinvoices`, `waitanyinvoice` and `getinfo`. */
export function createCln(options: ClnOptions): LightningNode {
  const { baseUrl, rune, certificate, clock, cursor, onWarning = () => {} } = options
  const timeouts = { ...NODE_TIMEOUTS, ...options.timeouts }
  const http = createNodeHttp({
    node: NODE,
    baseUrl,
    headers: { rune },
    certificate,
    connectTimeoutMs: timeouts.connectMs,
    answerOf,
  })

  const call: ClnCall = ({ method, params, ...request }) =>
    http.call({ ...request, method: 'POST', path: `/v1/${method}`, json: params })

  async function info(): Promise<NodeInfo> {
    const answer = await call({
      what: 'asking for the node',
      method: 'getinfo',
      params: {},
      timeoutMs: timeouts.infoMs,
    })
    const chain = read.string(answer, 'network')
    const network = supportedNetwork(NODE, chain === 'bitcoin' ? 'mainnet' : chain)
    const isBehind = answer.warning_bitcoind_sync ?? answer.warning_lightningd_sync
    return { network, synced: isBehind === undefined, nodeId: nodeIdOf(answer.id) }
  }

  async function createInvoice({ amountMsat, memo, expirySeconds }: InvoiceRequest) {
    const answer = await call({
      what: 'making an invoice',
      method: 'invoice',
      params: {
        amount_msat: amountMsat,
        // A label must be unique. Only the node's operator sees it.
        label: `mayfly-${randomUUID()}`,
        description: memo,
        expiry: expirySeconds,
        ...(options.private ? { exposeprivatechannels: true } : {}),
      },
      timeoutMs: timeouts.createMs,
    })
    return {
      bolt11: read.string(answer, 'bolt11'),
      paymentHash: read.hash(answer, 'payment_hash'),
    }
  }

  async function lookupInvoice(paymentHash: string): Promise<InvoiceStatus> {
    const { invoices } = await call({
      what: 'looking up an invoice',
      method: 'listinvoices',
      params: { payment_hash: paymentHash },
      timeoutMs: timeouts.lookupMs,
    })
    if (!Array.isArray(invoices)) throw read.malformed('invoices is missing')
    if (invoices.length === 0) throw new UnknownInvoice()
    const invoice = read.object(invoices[0])
    if (invoices.length > 1 || read.hash(invoice, 'payment_hash') !== paymentHash) {
      throw read.malformed('the node answered for another invoice')
    }
    return statusOf(read.string(invoice, 'status'))
  }

  const trial = (method: string, params: Fields) => ({
    needs: method,
    call: () => call({ what: 'trying the rune', method, params, timeoutMs: timeouts.infoMs }),
  })

  const checkAccess = () =>
    findProblem({
      baseUrl,
      speaks: 'speaks HTTPS as clnrest does',
      port: 'the port of clnrest',
      certificate: 'use the ca.pem of clnrest, made for that host',
      info: { needs: 'getinfo', call: info },
      trials: [
        // These calls change nothing: an unknown hash, an invalid amount, a wait of zero seconds.
        trial('listinvoices', { payment_hash: '00'.repeat(32) }),
        trial('invoice', { amount_msat: 'none', label: 'mayfly', description: 'mayfly' }),
        trial('waitanyinvoice', { timeout: 0 }),
      ],
      denied: ({ code, message }, method) =>
        RUNE_CODES.has(code)
          ? `Core Lightning: the rune does not allow ${method} (${message}); ${CREATE_RUNE}`
          : null,
    })

  return createNode(
    {
      info,
      createInvoice,
      lookupInvoice,
      watch: (onSettled, signal) =>
        watchCln({ call, cursor, timeouts, onWarning, signal }, onSettled),
      checkAccess,
      close: () => http.close(),
    },
    { clock },
  )
}

const RUNE_CODES = new Set<unknown>([401, 403, 1501, 1502])

/** clnrest's `{code, message}`, which some versions put into `error`. */
function answerOf({ status, text }: NodeResponse): NodeAnswer | null {
  const body = objectIn(text)
  const { code, message } = isObject(body?.error) ? body.error : (body ?? {})
  if (typeof message !== 'string') return null
  const isAccess = status === 401 || status === 403
  return { code: typeof code === 'number' && !isAccess ? code : status, message }
}

function statusOf(status: string): InvoiceStatus {
  switch (status) {
    case 'unpaid':
      return { state: 'open' }
    case 'paid':
      return { state: 'settled' }
    case 'expired':
      return { state: 'dead', isFinal: true }
    default:
      throw read.malformed('an invoice is in an unknown state')
  }
}

/** Calls one method. @throws NodeError */
type ClnCall = (request: {
  /** What the call does, for error messages. */
  what: string
  method: string
  params: Fields
  timeoutMs: number
  signal?: AbortSignal
}) => Promise<Fields>

// The JSON-RPC code for a wait that ended without a payment.
const WAITED_LONG_ENOUGH = 904

/**
 * Ends only when `signal` aborts. With a cursor of 0, the node reports every invoice that was ever paid.
 * That happens once, because the cursor advances with each report.
 */
async function watchCln(
  options: Omit<FollowOptions, 'node' | 'probe'> & {
    call: ClnCall
    cursor: Cursor
    timeouts: NodeTimeouts
  },
  onSettled: (paymentHash: string) => void,
): Promise<void> {
  const { call, cursor, timeouts, signal } = options
  const waitSeconds = Math.max(1, Math.floor(timeouts.probeEveryMs / 1000))
  /** The last `pay_index` that this process has seen. */
  let seen = 0

  async function follow(onAlive: () => void): Promise<never> {
    // Read from the store each time, because it is reset for a new node.
    let payIndex = Math.max(seen, await cursor.read())
    for (;;) {
      signal.throwIfAborted()
      const invoice = await next(payIndex)
      if (invoice === null) {
        onAlive()
        continue
      }
      const index = read.count(invoice, 'pay_index') ?? 0
      if (index <= payIndex) throw read.malformed('pay_index did not grow')
      const paymentHash = read.hash(invoice, 'payment_hash')
      // Only now: a node that keeps saying nonsense is asked less and less often.
      onAlive()
      onSettled(paymentHash)
      payIndex = index
      seen = index
      await cursor.write(index)
    }
  }

  /** The next paid invoice, or null if no invoice was paid for a while. */
  async function next(payIndex: number): Promise<Fields | null> {
    try {
      return await call({
        what: 'waiting for a payment',
        method: 'waitanyinvoice',
        params: { lastpay_index: payIndex, timeout: waitSeconds },
        // A node that hangs does not answer when the wait is over.
        timeoutMs: waitSeconds * 1000 + timeouts.infoMs,
        signal,
      })
    } catch (error) {
      if (error instanceof NodeError && error.answer?.code === WAITED_LONG_ENOUGH) return null
      throw error
    }
  }

  await keepFollowing(follow, { ...options, node: NODE, probe: null })
}
