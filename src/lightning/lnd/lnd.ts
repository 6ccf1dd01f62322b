/** LND over its REST port (lnd 0.19 and later). */
import type { Clock } from '../../lib/clock.ts'
import {
  type InvoiceRequest,
  type InvoiceStatus,
  type NodeInfo,
  UnknownInvoice,
} from '../lightning.ts'
import { NodeError } from '../node/error.ts'
import type { Fields } from '../node/json-fields.ts'
import { createNode, type LightningNode, NODE_TIMEOUTS, type NodeTimeouts } from '../node/node.ts'
import type { Cursor } from '../node/watch.ts'
import { checkLnd } from './access.ts'
import { lndError, madeInvoice, nodeInfo, seenInvoice } from './answers.ts'
import { createLndHttp } from './http.ts'
import { watchSettlements } from './watch.ts'

export type LndOptions = {
  /** `https://host:8080` */
  baseUrl: string
  /** In hex. It needs invoices:read, invoices:write and info:read. */
  macaroon: string
  /** The PEM of the node's own certificate. Default: the system's roots. */
  certificate: string | undefined
  /** Puts hints to private channels into invoices. A node without public channels needs them. */
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
      checkAccess: (rememberedInfo) =>
        checkLnd({ http, info: rememberedInfo, baseUrl, timeoutMs: timeouts.infoMs }),
      close: () => http.close(),
    },
    { clock },
  )
}
