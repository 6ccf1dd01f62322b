/** LND over its REST port (lnd 0.19 and later). */
import type { Clock } from '../../lib/clock.ts'
import {
  type InvoiceRequest,
  type InvoiceStatus,
  type NodeInfo,
  UnknownInvoice,
} from '../lightning.ts'
import { type AccessProblem, findProblem } from '../node/access.ts'
import { type NodeAnswer, NodeError } from '../node/error.ts'
import type { NodeRequest } from '../node/http.ts'
import type { Fields } from '../node/json-fields.ts'
import { createNode, type LightningNode, NODE_TIMEOUTS, type NodeTimeouts } from '../node/node.ts'
import { type Cursor, type FollowOptions, keepFollowing } from '../node/watch.ts'
import type { LndAccess } from '../urls.ts'
import {
  createLndHttp,
  type LndHttp,
  lndError,
  madeInvoice,
  nodeInfo,
  type SeenInvoice,
  seenInvoice,
  streamedInvoice,
} from './wire.ts'

export type LndOptions = Omit<LndAccess, 'private'> & {
  private?: boolean
  clock: Clock
  timeouts?: Partial<NodeTimeouts>
  /** The last settlement that the invoice stream reported, stored between runs. */
  cursor: Cursor
  onWarning?: (message: string) => void
}

const NOT_FOUND = 5 // gRPC
const NO_SUCH_ROUTE = 'Not Found' // the gateway's own words, which say nothing about an invoice

export function createLnd(options: LndOptions): LightningNode {
  const { baseUrl, clock, cursor, onWarning = () => {} } = options
  const timeouts = { ...NODE_TIMEOUTS, ...options.timeouts }
  const http = createLndHttp({ ...options, connectTimeoutMs: timeouts.connectMs })

  async function info(): Promise<NodeInfo> {
    const call = { what: 'asking for the node', method: 'GET', path: '/v1/getinfo' } as const
    return nodeInfo(await http.call({ ...call, timeoutMs: timeouts.infoMs }))
  }

  async function createInvoice({ amountMsat, memo, expirySeconds }: InvoiceRequest) {
    return madeInvoice(
      await http.call({
        what: 'making an invoice',
        method: 'POST',
        path: '/v1/invoices',
        json: {
          value_msat: String(amountMsat),
          memo,
          expiry: String(expirySeconds),
          private: options.private ?? false,
        },
        timeoutMs: timeouts.createMs,
      }),
    )
  }

  async function lookupInvoice(paymentHash: string): Promise<InvoiceStatus> {
    const seen = seenInvoice(await fetchInvoice(paymentHash))
    if (seen.paymentHash !== paymentHash) {
      throw lndError('malformed', 'the node answered for another invoice')
    }
    // Dead means "canceled": LND holds no HTLC for it and accepts no new one.
    return seen.state === 'dead' ? { state: 'dead', isFinal: true } : { state: seen.state }
  }

  async function fetchInvoice(paymentHash: string): Promise<Fields> {
    try {
      return await http.call({
        what: 'looking up an invoice',
        method: 'GET',
        path: `/v1/invoice/${paymentHash}`,
        timeoutMs: timeouts.lookupMs,
      })
    } catch (error) {
      const answer = error instanceof NodeError ? error.answer : undefined
      const isUnknown = answer?.code === NOT_FOUND && answer.message !== NO_SUCH_ROUTE
      throw isUnknown ? new UnknownInvoice() : error
    }
  }

  return createNode(
    {
      info,
      createInvoice,
      lookupInvoice,
      watch: (onSettled, signal) =>
        watchSettlements({ http, cursor, probe: info, timeouts, onWarning, signal }, onSettled),
      checkAccess: () => checkLnd({ http, info, baseUrl, timeoutMs: timeouts.infoMs }),
      close: () => http.close(),
    },
    { clock },
  )
}

const BAKE = 'bake one with: lncli bakemacaroon invoices:read invoices:write info:read'
const DENIED = 'permission denied'

// The messages of LND and its macaroon library. Their gRPC code is only "unknown".
const MACAROON_ERROR = /macaroon|caveat|verification failed|encoding\/hex|unmarshal|data format/

/** The first missing permission or other problem, or null. */
export function checkLnd({
  http,
  info,
  baseUrl,
  timeoutMs,
}: {
  http: Pick<LndHttp, 'call'>
  info: () => Promise<unknown>
  baseUrl: string
  timeoutMs: number
}): Promise<AccessProblem | null> {
  const trial = (needs: string, call: Pick<NodeRequest, 'method' | 'path' | 'json'>) => ({
    needs,
    call: () => http.call({ ...call, what: 'trying the macaroon', timeoutMs }),
  })
  return findProblem({
    baseUrl,
    speaks: 'speaks HTTPS as LND does',
    port: 'the REST port of LND',
    certificate: "use the node's own tls.cert, made for that host",
    info: { needs: 'info:read', call: info },
    trials: [
      trial('invoices:read', { method: 'GET', path: `/v1/invoice/${'00'.repeat(32)}` }),
      // Every version refuses an amount that is given twice, so this makes no invoice.
      trial('invoices:write', {
        method: 'POST',
        path: '/v1/invoices',
        json: { value: '1', value_msat: '1' },
      }),
    ],
    denied,
  })
}

function denied({ message }: NodeAnswer, permission: string): string | null {
  // Usually this is the invoice.macaroon that LND makes, which lacks info:read.
  if (message === DENIED) return `LND: the macaroon lacks ${permission}; ${BAKE}`
  return MACAROON_ERROR.test(message)
    ? `LND does not accept the macaroon (of another node, expired or damaged); ${BAKE}`
    : null
}

/**
 * Ends only when `signal` aborts. The node replays the settlements after the cursor. It may skip some
 * (lnd#7071), and for a cursor of 0 it replays nothing (lnd#2469), so each report is only a hint.
 */
async function watchSettlements(
  { http, cursor, ...options }: Omit<FollowOptions, 'node'> & { http: LndHttp; cursor: Cursor },
  onSettled: (paymentHash: string) => void,
): Promise<void> {
  /** The last settlement that this process has seen. */
  let seen = 0

  /** Never returns, because a stream that ends has failed. */
  async function follow(onAlive: () => void, { signal }: AbortController): Promise<never> {
    // Read from the store each time, because it is reset for a new node.
    const from = Math.max(seen, await cursor.read())
    for await (const line of http.lines(`/v1/invoices/subscribe?settle_index=${from}`, signal)) {
      onAlive()
      await handle(line)
    }
    throw lndError('unreachable', 'the invoice stream ended')
  }

  async function handle(line: string): Promise<void> {
    const invoice = readable(line)
    // Skipped: on a new connection, the node would send the same line again.
    if (!invoice) return options.onWarning('LND: an event of the invoice stream is unreadable')
    if (invoice.state !== 'settled') return
    onSettled(invoice.paymentHash)
    if (invoice.settleIndex <= seen) return
    seen = invoice.settleIndex
    await cursor.write(seen)
  }

  await keepFollowing(follow, { ...options, node: 'LND' })
}

function readable(line: string): SeenInvoice | null {
  try {
    return streamedInvoice(line)
  } catch (error) {
    if (error instanceof NodeError && error.reason === 'malformed') return null
    throw error
  }
}
